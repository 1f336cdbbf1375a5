import { useEffect, useRef, useState } from "preact/hooks";
import { api, isAbort } from "@/api/index.ts";
import { exportRecords, type Filters, isPrefix, listDamagedRecords, MOST_DAMAGED } from "@/api/provenance.ts";
import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { saveFile } from "@/components/saveFile.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatBytes, formatCount } from "@/format.ts";
import { type ChainName, formatChain } from "@/proof/chains.ts";
import css from "./Audit.module.css";
import { buildExportName, buildFetchCommand, checkExport, type ExportFormat, MAX_EXPORTED } from "./exportFile.ts";
import { countFilters } from "./place.ts";
import { readStream } from "./streaming.ts";

interface Props {
  chain: ChainName;
  filters: Filters;
  onClose: () => void;
}

/** A saved file. */
interface Exported {
  name: string;
  /** Bytes. */
  size: number;
  /** True if there are more matching records. */
  isPrefix: boolean;
  /** RecordIDs of altered or damaged records; of an unchecked file only of damaged ones, at most `MOST_DAMAGED`. */
  altered: readonly string[];
  /** Whether the browser checked the content of all records. */
  isChecked: boolean;
}

interface State {
  /** Bytes received so far; undefined without a running export. */
  received: number | undefined;
  isChecking?: boolean;
  done: Exported | undefined;
  error: unknown;
}

const FORMATS = [
  { value: "json", label: "JSON: whole records, for the offline verifier" },
  { value: "csv", label: "CSV: people, actions, times and hashes, without states" },
] as const;

/** A dialog that exports the filtered records to a file. */
export function ExportDialog({ chain, filters, onClose }: Props) {
  const [format, setFormat] = useState<ExportFormat>("json");
  const [limit, setLimit] = useState(String(MAX_EXPORTED));
  const [state, setState] = useState<State>({ received: undefined, done: undefined, error: undefined });
  const work = useRef<AbortController>(undefined);
  useEffect(() => () => work.current?.abort(), []);
  const most = Number(limit);
  const wrong =
    Number.isInteger(most) && most >= 1 && most <= MAX_EXPORTED ? undefined : `1 to ${formatCount(MAX_EXPORTED)}`;

  const start = async () => {
    const abort = new AbortController();
    work.current = abort;
    setState({ received: 0, done: undefined, error: undefined });
    try {
      const reply = await exportRecords(api, chain, { ...filters, format, limit: most }, abort.signal);
      const file = await readStream(reply, (received) => setState((before) => ({ ...before, received })));
      const name = buildExportName(chain, format);
      saveFile(file.blob, name);
      setState((before) => ({ ...before, isChecking: true }));
      const found = await checkExport(file.blob, format, countFilters(filters) > 0, abort.signal);
      const altered = [...new Set([...listDamagedRecords(reply.headers), ...(found ?? [])])];
      const content = { isPrefix: isPrefix(reply.headers), altered, isChecked: found !== undefined };
      setState({ received: undefined, done: { name, size: file.size, ...content }, error: undefined });
    } catch (error) {
      setState({ received: undefined, done: undefined, error: isAbort(error) ? undefined : error });
    }
  };

  const busy = state.received !== undefined;
  return (
    <Dialog
      title={`Export of ${formatChain(chain)}`}
      onClose={onClose}
      actions={
        <>
          {busy ? (
            <Button onClick={() => work.current?.abort()}>Stop</Button>
          ) : (
            <Button onClick={onClose}>Close</Button>
          )}
          <Button
            kind="primary"
            icon="download"
            busy={busy}
            disabled={wrong !== undefined}
            onClick={() => void start()}
          >
            Export
          </Button>
        </>
      }
    >
      <p class={css.soft}>
        {countFilters(filters) === 0
          ? "All records, oldest first."
          : "The records that match the filters, oldest first."}
      </p>
      <Select label="Format" value={format} options={FORMATS} onChange={setFormat} disabled={busy} />
      <Field label="Maximum records" type="number" value={limit} onInput={setLimit} error={wrong} disabled={busy} />
      {busy && (
        <div class={css.walking} role="status">
          <progress aria-label="Exporting" />
          <p>
            {formatBytes(state.received ?? 0)} received{state.isChecking && "; checking the records"}
          </p>
        </div>
      )}
      {state.error !== undefined && <ErrorNotice error={state.error} onRetry={() => void start()} />}
      {state.done && <Altered file={state.done} />}
      {state.done && <Done chain={chain} file={state.done} />}
    </Dialog>
  );
}

function Altered({ file: { altered, isChecked } }: { file: Exported }) {
  if (altered.length === 0) {
    return null;
  }
  const more = altered.length - MOST_DAMAGED;
  const rest = more > 0 ? ` and ${formatCount(more)} more` : !isChecked && more === 0 ? " and possibly more" : "";
  return (
    <Notice kind="alarm" title="Some records were altered after they were recorded. Do not rely on them.">
      {isChecked ? "Altered or damaged in the store, or next to a missing record" : "Damaged in the store"}:{" "}
      <VisibleText text={altered.slice(0, MOST_DAMAGED).join(", ")} />
      {rest}. “Verify chain” shows what to do.
    </Notice>
  );
}

function Done({ chain, file }: { chain: ChainName; file: Exported }) {
  if (!file.isPrefix) {
    return (
      <Notice
        kind={file.isChecked && file.altered.length === 0 ? "good" : "info"}
        title={`${file.name}, ${formatBytes(file.size)}`}
      >
        The file contains all matching records.
        {!file.isChecked && " This page did not check whether they were altered; “Verify chain” does."}
      </Notice>
    );
  }
  return (
    <>
      <Notice kind="warn" title="The file is incomplete: there are more records">
        {file.name} contains the oldest of them, {formatBytes(file.size)}. Export several date ranges, or fetch the
        whole chain with this command; it needs a token in OI_TOKEN.
      </Notice>
      <CodeBlock code={buildFetchCommand(window.location.origin, chain)} label="Command that fetches the whole chain" />
    </>
  );
}
