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
import type { QueryRecords } from "./paging.ts";
import { countFilters } from "./place.ts";
import { RemovedEndNotice } from "./RemovedEndNotice.tsx";
import { findRemovedEnd } from "./removedEnd.ts";
import { readStream } from "./streaming.ts";

interface Props {
  chain: ChainName;
  ask: QueryRecords;
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
  /** RecordIDs of other records that are next to a missing one; empty for an unchecked file. */
  besideGaps: readonly string[];
  /** Result of `findRemovedEnd`; 0 for a file that need not contain the chain's end. */
  removedEnd: number | null;
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
export function ExportDialog({ chain, ask, filters, onClose }: Props) {
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
    const isFiltered = countFilters(filters) > 0;
    let done: Exported | undefined;
    try {
      const reply = await exportRecords(api, chain, { ...filters, format, limit: most }, abort.signal);
      const file = await readStream(reply, (received) => setState((before) => ({ ...before, received })));
      const name = buildExportName(chain, format);
      saveFile(file.blob, name);
      const content = { altered: listDamagedRecords(reply.headers), besideGaps: [], removedEnd: 0, isChecked: false };
      // The file exists from here on, also if its check is stopped or fails.
      done = { name, size: file.size, isPrefix: isPrefix(reply.headers), ...content };
      setState((before) => ({ ...before, isChecking: true }));
      if (!isFiltered && !done.isPrefix) {
        done = { ...done, removedEnd: await findRemovedEnd(ask, chain, 0, abort.signal) };
      }
      const found = await checkExport(file.blob, format, isFiltered, abort.signal);
      if (found !== undefined) {
        const altered = [...new Set([...done.altered, ...found.altered])];
        done = { ...done, altered, besideGaps: found.besideGaps, isChecked: true };
      }
      setState({ received: undefined, done, error: undefined });
    } catch (error) {
      setState({ received: undefined, done, error: isAbort(error) ? undefined : error });
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
      {state.done && <RemovedEndNotice covered={state.done.removedEnd} />}
      {state.done && <Done chain={chain} file={state.done} />}
    </Dialog>
  );
}

function Altered({ file: { altered, besideGaps, isChecked } }: { file: Exported }) {
  const mayHaveMore = !isChecked && altered.length === MOST_DAMAGED;
  return (
    <>
      {altered.length > 0 && (
        <Notice kind="alarm" title="Some records were altered after they were recorded. Do not rely on them.">
          {isChecked ? "Altered or damaged in the store" : "Damaged in the store"}: <RecordIds ids={altered} />
          {mayHaveMore && " and possibly more"}. “Verify chain” shows what to do.
        </Notice>
      )}
      {besideGaps.length > 0 && (
        <Notice kind="alarm" title="Records next to these were removed.">
          Next to a missing record: <RecordIds ids={besideGaps} />. “Verify chain” shows what to do.
        </Notice>
      )}
    </>
  );
}

function RecordIds({ ids }: { ids: readonly string[] }) {
  const more = ids.length - MOST_DAMAGED;
  return (
    <>
      <VisibleText text={ids.slice(0, MOST_DAMAGED).join(", ")} />
      {more > 0 && ` and ${formatCount(more)} more`}
    </>
  );
}

function Done({ chain, file }: { chain: ChainName; file: Exported }) {
  const unchecked = file.isChecked
    ? ""
    : " This page did not check whether the records were altered; “Verify chain” does.";
  if (!file.isPrefix) {
    const isSound =
      file.isChecked && file.altered.length === 0 && file.besideGaps.length === 0 && file.removedEnd === 0;
    return (
      <Notice kind={isSound ? "good" : "info"} title={`${file.name}, ${formatBytes(file.size)}`}>
        The file contains all matching records.{unchecked}
      </Notice>
    );
  }
  return (
    <>
      <Notice kind="warn" title="The file is incomplete: there are more records">
        {file.name} contains the oldest of them, {formatBytes(file.size)}. Export several date ranges, or fetch the
        whole chain with this command; it needs a token in OI_TOKEN.{unchecked}
      </Notice>
      <CodeBlock code={buildFetchCommand(window.location.origin, chain)} label="Command that fetches the whole chain" />
    </>
  );
}
