import { useState } from "preact/hooks";
import { JobRequests } from "@/api/idempotency.ts";
import type { CreatedImport } from "@/api/imports.ts";
import { Button } from "@/components/Button.tsx";
import { showToast } from "@/components/toasts.ts";
import { formatBytes } from "@/format.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { Panel } from "@/shell/Page.tsx";
import { ConnectionField } from "./ConnectionField.tsx";
import { createImport, isImportUsable, startImport } from "./calls.ts";
import { type FileFacts, guessTimeColumn, inspectFile } from "./columns.ts";
import { FileDrop } from "./FileDrop.tsx";
import css from "./Imports.module.css";
import { MappingPreview } from "./MappingPreview.tsx";
import { uploadFile } from "./upload.ts";
import { useMappedPreview } from "./useMappedPreview.ts";

interface Props {
  /** The connection that is chosen at first. */
  connection: string;
  onChanged: () => void;
}

interface Chosen {
  file: File;
  facts: FileFacts;
}

/** Chooses a file, uploads it, shows its preview, and starts its import. */
export function NewImport({ connection: first, onChanged }: Props) {
  const [connection, setConnection] = useState(first);
  const [chosen, setChosen] = useState<Chosen>();
  const mapped = useMappedPreview({ timestamp: "" });
  const { mapping, preview } = mapped;
  const [created, setCreated] = useState<CreatedImport>();
  const [uploaded, setUploaded] = useState(false);
  const [requests] = useState(() => new JobRequests());
  const [sent, setSent] = useState<number>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [started, setStarted] = useState(0);

  useUnsavedWarning(chosen !== undefined);

  const forgetImport = () => {
    setCreated(undefined);
    setUploaded(false);
    mapped.clear();
  };
  const choose = async (file: File) => {
    const facts = await inspectFile(file);
    setChosen({ file, facts });
    mapped.change({
      timestamp: guessTimeColumn(facts.columns),
      ...(facts.format === "csv" ? { delimiter: facts.delimiter } : {}),
    });
    forgetImport();
    setError(undefined);
  };
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
      setSent(undefined);
      onChanged();
    }
  };
  const create = ({ file, facts }: Chosen) => {
    const request = { format: facts.format, fileName: file.name, bytes: Math.max(1, file.size), mapping };
    return requests.run({ connection, request }, (key) => createImport(connection, request, key));
  };
  const show = (shown: Chosen) =>
    run(async () => {
      // An upload that fails is repeated for the same import, unless that one was cancelled in the list or has expired.
      const known = created && (await isImportUsable(created.importId)) ? created : undefined;
      if (!known) {
        forgetImport();
      }
      const made = known ?? (await create(shown));
      setCreated(made);
      if (!known || !uploaded) {
        await upload(made, shown.file, setSent);
        setUploaded(true);
      }
      await mapped.load(made.importId);
    });
  const start = ({ importId }: CreatedImport) =>
    run(async () => {
      await startImport(importId, mapping);
      showToast("The import was started");
      setStarted((before) => before + 1);
      setChosen(undefined);
      forgetImport();
    });
  return (
    <Panel title="New import">
      <div class={css.form}>
        <ConnectionField value={connection} disabled={busy || created !== undefined} onChange={setConnection} />
        {/* Another key after each start, because an input keeps the name of its file. */}
        <FileDrop key={started} file={chosen?.file} disabled={busy} onChoose={(file) => void choose(file)} />
        {chosen && (
          <MappingPreview format={chosen.facts.format} mapped={mapped} columns={chosen.facts.columns} error={error}>
            {sent !== undefined && (
              <div class={css.sent}>
                <progress aria-label="Upload" max={Math.max(1, chosen.file.size)} value={sent} />
                <span>
                  {formatBytes(sent)} of {formatBytes(chosen.file.size)} uploaded
                </span>
              </div>
            )}
          </MappingPreview>
        )}
        {chosen && (
          <div class={css.actions}>
            <Button
              busy={busy}
              disabled={connection === "" || mapping.timestamp === ""}
              onClick={() => void show(chosen)}
            >
              {uploaded ? "Preview again" : "Upload and preview"}
            </Button>
            {created && preview && (
              <Button kind="primary" busy={busy} onClick={() => void start(created)}>
                Start import
              </Button>
            )}
          </div>
        )}
      </div>
    </Panel>
  );
}

async function upload({ uploadUrl }: CreatedImport, file: File, onProgress: (bytes: number) => void): Promise<void> {
  onProgress(0);
  await uploadFile(uploadUrl, file, { onProgress, signal: new AbortController().signal });
}
