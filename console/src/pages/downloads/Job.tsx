import { useState } from "preact/hooks";
import type { Download } from "@/api/downloads.ts";
import { Status, type Tone } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { formatBytes, formatCount } from "@/format.ts";
import css from "./Downloads.module.css";
import { Files } from "./Files.tsx";
import { isUnfinished } from "./pace.ts";

const TONES: Record<Download["status"], Tone> = {
  pending: "neutral",
  running: "accent",
  completed: "good",
  failed: "bad",
  cancelled: "warn",
};

interface Props {
  download: Download;
  /** Its source, if this tab started it. */
  source: string | undefined;
  onCancel: () => Promise<void>;
}

/** A download: its progress and files. */
export function Job({ download, source, onCancel }: Props) {
  const [busy, setBusy] = useState(false);
  const { status, progress, files, error } = download;
  const cancel = async () => {
    setBusy(true);
    await onCancel();
    setBusy(false);
  };
  const title = source ?? describeDownload(download);
  return (
    <article class={css.job} aria-label={`${title}, ${status}`}>
      <header>
        <Status tone={TONES[status]}>{status}</Status>
        <h3>{title}</h3>
        <span class={css.format}>{download.format}</span>
        <span class={css.range}>
          <Time at={download.dateRange.start} /> to <Time at={download.dateRange.end} />
        </span>
        {isUnfinished(download) && (
          <Button kind="quiet" icon="close" busy={busy} onClick={() => void cancel()}>
            Cancel
          </Button>
        )}
      </header>
      {isUnfinished(download) && (
        <div class={css.progress}>
          <progress
            aria-label={`Connections done of ${title}`}
            max={Math.max(1, progress.connectionsTotal)}
            value={progress.connectionsDone}
          />
          <span>
            {progress.connectionsDone} of {progress.connectionsTotal} connections, {formatCount(progress.rows)} rows
          </span>
        </div>
      )}
      {error && (
        <Notice kind="bad" title={error}>
          <p>
            Start it again; if it fails repeatedly, choose a shorter range. Download <code>{download.downloadId}</code>
          </p>
        </Notice>
      )}
      {files.length > 0 && <Files files={files} downloadId={download.downloadId} />}
      <footer>
        started <Time at={download.createdAt} />
        {status === "completed" && ` · ${describeTotals(download)}`}
        {!isUnfinished(download) && (
          <>
            {" · removed "}
            <Time at={download.expiresAt} />
          </>
        )}
      </footer>
    </article>
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
  return `${formatCount(progress.rows)} rows · ${formatBytes(size)}`;
}
