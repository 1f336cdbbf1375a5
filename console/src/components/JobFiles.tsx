import { formatBytes, formatCount } from "@/format.ts";
import { session } from "@/session/index.ts";
import { CopyButton } from "./CopyButton.tsx";
import css from "./JobCard.module.css";
import type { JobFile } from "./jobs.ts";
import { showToast } from "./toasts.ts";

interface Props {
  files: readonly JobFile[];
  /** What the files contain: "Rows". */
  unit: string;
  /** Returns a new link to a file, after the old one expired. */
  renew: (index: number) => Promise<string | undefined>;
}

/** The files of a job, with links. */
export function JobFiles({ files, unit, renew }: Props) {
  return (
    <div class={css.files}>
      <table>
        <thead>
          <tr>
            <th scope="col">File</th>
            <th scope="col">{unit}</th>
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
                    if (new Date(file.urlExpiresAt) <= session.now()) {
                      event.preventDefault();
                      void saveRenewed(() => renew(index));
                    }
                  }}
                >
                  {file.name}
                </a>
              </td>
              <td>{formatCount(file.rows)}</td>
              <td>{formatBytes(file.bytes)}</td>
              <td>
                <span class={css.digest}>
                  <code title={file.sha256}>{file.sha256}</code>
                  <CopyButton text={file.sha256} of={`SHA-256 of ${file.name}`} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Saves a file through a new link. */
async function saveRenewed(renew: () => Promise<string | undefined>): Promise<void> {
  try {
    const url = await renew();
    if (url) {
      window.location.assign(url);
    }
  } catch (error) {
    showToast(error instanceof Error ? error.message : String(error), "bad");
  }
}
