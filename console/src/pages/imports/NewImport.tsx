import { useState } from "preact/hooks";
import { CreatingRequests } from "@/api/idempotency.ts";
import type { CreatedImport, ImportMapping, ImportPreview } from "@/api/imports.ts";
import { ApiError, describeError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Notice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { formatBytes } from "@/format.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { Panel } from "@/shell/Page.tsx";
import { ConnectionField } from "./ConnectionField.tsx";
import { createImport, previewImport, startImport } from "./calls.ts";
import { type FileFacts, guessTimeColumn, inspectFile } from "./columns.ts";
import { FileDrop } from "./FileDrop.tsx";
import css from "./Imports.module.css";
import { MappingFields } from "./MappingFields.tsx";
import { PreviewPanel } from "./PreviewPanel.tsx";
import { uploadFile } from "./upload.ts";

interface Props {
  /** The connection that is chosen at first. */
  connection: string;
  onChanged: () => void;
}

interface Chosen {
  file: File;
  facts: FileFacts;
}

interface Previewed {
  /** The mapping that was previewed. */
  mapping: ImportMapping;
  preview: ImportPreview;
}

/** Chooses a file, uploads it, shows its preview, and starts its import. */
export function NewImport({ connection: first, onChanged }: Props) {
  const [connection, setConnection] = useState(first);
  const [chosen, setChosen] = useState<Chosen>();
  const [mapping, setMapping] = useState<ImportMapping>({ timestamp: "" });
  const [created, setCreated] = useState<CreatedImport>();
  const [uploaded, setUploaded] = useState(false);
  const [requests] = useState(() => new CreatingRequests());
  const [previewed, setPreviewed] = useState<Previewed>();
  const [sent, setSent] = useState<number>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [started, setStarted] = useState(0);

  useUnsavedWarning(chosen !== undefined);

  const choose = async (file: File) => {
    const facts = await inspectFile(file);
    setChosen({ file, facts });
    setMapping({
      timestamp: guessTimeColumn(facts.columns),
      ...(facts.format === "csv" ? { delimiter: facts.delimiter } : {}),
    });
    setCreated(undefined);
    setUploaded(false);
    setPreviewed(undefined);
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
      const made = created ?? (await create(shown));
      // An upload that fails is repeated for the same import.
      setCreated(made);
      if (!uploaded) {
        await upload(made, shown.file, setSent);
        setUploaded(true);
      }
      setPreviewed({ mapping, preview: await previewImport(made.importId, mapping) });
    });
  const start = ({ importId }: CreatedImport) =>
    run(async () => {
      await startImport(importId, mapping);
      showToast("The import was started");
      setStarted((before) => before + 1);
      setChosen(undefined);
      setCreated(undefined);
      setPreviewed(undefined);
    });
  // Stored messages cannot be changed, so only a mapping whose result is visible is imported.
  const preview = previewed?.mapping === mapping ? previewed.preview : undefined;
  const found = previewed?.preview.columns ?? [];
  const columns = found.length > 0 ? found : (chosen?.facts.columns ?? []);
  return (
    <Panel title="New import">
      <div class={css.form}>
        <ConnectionField value={connection} disabled={busy || created !== undefined} onChange={setConnection} />
        {/* Another key after each start, because an input keeps the name of its file. */}
        <FileDrop key={started} file={chosen?.file} disabled={busy} onChoose={(file) => void choose(file)} />
        {chosen && (
          <MappingFields
            format={chosen.facts.format}
            mapping={mapping}
            columns={columns}
            error={error instanceof ApiError ? error : undefined}
            onChange={setMapping}
          />
        )}
        <Failure error={error} />
        {chosen && sent !== undefined && (
          <div class={css.sent}>
            <progress aria-label="Upload" max={Math.max(1, chosen.file.size)} value={sent} />
            <span>
              {formatBytes(sent)} of {formatBytes(chosen.file.size)} uploaded
            </span>
          </div>
        )}
        {preview && <PreviewPanel preview={preview} />}
        {previewed && !preview && (
          <Notice title="The columns or formats have changed since the preview">
            Preview again before the import.
          </Notice>
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

function Failure({ error }: { error: unknown }) {
  if (error === undefined) {
    return null;
  }
  const text = error instanceof Error && !(error instanceof ApiError) ? error.message : describeError(error);
  return (
    <Notice kind="bad" title="The import cannot continue">
      <p>{text}</p>
    </Notice>
  );
}

async function upload({ uploadUrl }: CreatedImport, file: File, onProgress: (bytes: number) => void): Promise<void> {
  onProgress(0);
  await uploadFile(uploadUrl, file, { onProgress, signal: new AbortController().signal });
}
