import type { DownloadFile } from "@/api/downloads.ts";
import { CopyButton } from "@/components/CopyButton.tsx";
import { showToast } from "@/components/toasts.ts";
import { formatBytes, formatCount } from "@/format.ts";
import { fetchDownload } from "./calls.ts";
import css from "./Downloads.module.css";

interface Props {
  files: readonly DownloadFile[];
  downloadId: string;
}

/** The files of a download, with links. */
export function Files({ files, downloadId }: Props) {
  return (
    <div class={css.files}>
      <table>
        <thead>
          <tr>
            <th scope="col">File</th>
            <th scope="col">Rows</th>
            <th scope="col">Size</th>
            <th scope="col">SHA-256</th>
          </tr>
        </thead>
        <tbody>
          {files.map((file, index) => (
            <tr key={file.sha256 + file.url}>
              <td>
                <a
                  href={file.url}
                  download
                  rel="noreferrer"
                  onClick={(event) => {
                    if (new Date(file.urlExpiresAt) <= new Date()) {
                      event.preventDefault();
                      void saveRenewed(downloadId, index);
                    }
                  }}
                >
                  {buildName(files, index)}
                </a>
              </td>
              <td>{formatCount(file.rows)}</td>
              <td>{formatBytes(file.bytes)}</td>
              <td>
                <span class={css.digest}>
                  <code title={file.sha256}>{file.sha256}</code>
                  <CopyButton text={file.sha256} of={`SHA-256 of ${buildName(files, index)}`} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Saves a file through a new link, after the old one expired. */
async function saveRenewed(downloadId: string, index: number): Promise<void> {
  try {
    const fresh = (await fetchDownload(downloadId)).files[index];
    if (fresh) {
      window.location.assign(fresh.url);
    }
  } catch (error) {
    showToast(error instanceof Error ? error.message : String(error), "bad");
  }
}

/** Returns the connection, with the part's number if it has several files. */
function buildName(files: readonly DownloadFile[], index: number): string {
  const { connection } = files[index] as DownloadFile;
  const parts = files.filter((each) => each.connection === connection).length;
  const part = files.slice(0, index + 1).filter((each) => each.connection === connection).length;
  return parts === 1 ? connection : `${connection}, part ${part} of ${parts}`;
}
