import { useState } from "preact/hooks";
import type { HistoryImport } from "@/api/imports.ts";
import { Button } from "@/components/Button.tsx";
import css from "@/components/JobCard.module.css";
import { JobCard } from "@/components/JobCard.tsx";
import { JobFiles } from "@/components/JobFiles.tsx";
import { isUnfinished } from "@/components/jobs.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatBytes, formatCount, formatQuantity } from "@/format.ts";
import { ContinueDialog } from "./ContinueDialog.tsx";
import { fetchImport } from "./calls.ts";

interface Props {
  job: HistoryImport;
  onCancel: () => Promise<void>;
  onStarted: () => void;
}

/** An import: its progress, its result and the file of rejected rows. */
export function ImportJob({ job, onCancel, onStarted }: Props) {
  const [open, setOpen] = useState(false);
  const { importId, connection, fileName, format, progress, files, startedAt } = job;
  const title = `${fileName} into ${connection}`;
  return (
    <JobCard
      job={job}
      title={title}
      facts={
        <>
          <span class={css.format}>{format}</span>
          <span class={css.range}>
            <VisibleText text={connection} />
          </span>
        </>
      }
      progress={{
        label: `Progress of ${title}`,
        done: progress.bytesDone ?? 0,
        total: progress.bytesTotal ?? 1,
        text: describeProgress(job),
      }}
      help={
        <>
          Correct the file or the mapping, and import the file again. Rows that are already stored are skipped. Import{" "}
          <code>{importId}</code>
        </>
      }
      totals={describeResult(job)}
      startedAt={startedAt}
      onCancel={onCancel}
    >
      {startedAt === null && isUnfinished(job) && (
        <div>
          <Button onClick={() => setOpen(true)}>Preview and start</Button>
        </div>
      )}
      {open && (
        <ContinueDialog
          job={job}
          onClose={() => setOpen(false)}
          onStarted={() => {
            setOpen(false);
            onStarted();
          }}
        />
      )}
      {files.length > 0 && (
        <JobFiles
          files={files.map((file) => ({ ...file, name: "Rejected rows with reasons" }))}
          unit="Rows"
          renew={async (index) => (await fetchImport(importId)).files[index]?.url}
        />
      )}
    </JobCard>
  );
}

/** Returns the progress of an import as text. */
export function describeProgress({ startedAt, progress }: HistoryImport): string {
  if (startedAt === null) {
    return "waits for its start; its file must be uploaded first";
  }
  const size = progress.bytesTotal === null ? "" : ` of ${formatBytes(progress.bytesTotal)}`;
  return `${formatQuantity(progress.rows, "row")}${size}`;
}

/** Returns the result of an import as text. */
export function describeResult({ accepted, duplicates, rejected }: HistoryImport): string {
  const parts = [`${formatCount(accepted)} stored`, formatQuantity(duplicates, "duplicate")];
  return [...parts, `${formatCount(rejected)} rejected`].join(" · ");
}
