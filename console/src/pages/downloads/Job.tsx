import type { Download } from "@/api/downloads.ts";
import css from "@/components/JobCard.module.css";
import { JobCard } from "@/components/JobCard.tsx";
import { JobFiles } from "@/components/JobFiles.tsx";
import { Time } from "@/components/Time.tsx";
import { formatBytes, formatQuantity } from "@/format.ts";
import { fetchDownload } from "./calls.ts";
import { listFiles } from "./files.ts";

interface Props {
  download: Download;
  /** Its source, if this tab started it. */
  source: string | undefined;
  onCancel: () => Promise<void>;
}

/** A download: its progress and files. */
export function Job({ download, source, onCancel }: Props) {
  const { downloadId, progress, files, format, dateRange } = download;
  const title = source ?? describeDownload(download);
  return (
    <JobCard
      job={download}
      title={title}
      facts={
        <>
          <span class={css.format}>{format}</span>
          <span class={css.range}>
            <Time at={dateRange.start} /> to <Time at={dateRange.end} />
          </span>
        </>
      }
      progress={{
        label: `Connections done of ${title}`,
        done: progress.connectionsDone,
        total: progress.connectionsTotal,
        text: `${progress.connectionsDone} of ${formatQuantity(progress.connectionsTotal, "connection")}, ${formatQuantity(progress.rows, "row")}`,
      }}
      help={
        <>
          Start it again; if it fails repeatedly, choose a shorter range. Download <code>{downloadId}</code>
        </>
      }
      totals={describeTotals(download)}
      onCancel={onCancel}
    >
      {files.length > 0 && (
        <JobFiles
          files={listFiles(files)}
          unit="Rows"
          renew={async (index) => (await fetchDownload(downloadId)).files[index]?.url}
        />
      )}
    </JobCard>
  );
}

function describeDownload({ files, progress }: Download): string {
  const names = [...new Set(files.map((file) => file.connection))];
  if (names.length > 0) {
    return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
  }
  return progress.connectionsTotal === 1 ? "One connection" : `${progress.connectionsTotal} connections`;
}

function describeTotals({ files, progress }: Download): string {
  const size = files.reduce((sum, file) => sum + file.bytes, 0);
  return `${formatQuantity(progress.rows, "row")} · ${formatBytes(size)}`;
}
