import type { DownloadFile } from "@/api/downloads.ts";
import type { JobFile } from "@/components/jobs.ts";

/** Returns the files of a download with their names. */
export function listFiles(files: readonly DownloadFile[]): JobFile[] {
  return files.map((file, index) => ({ ...file, name: buildName(files, index) }));
}

/** Returns the connection, with the part's number if it has several files. */
function buildName(files: readonly DownloadFile[], index: number): string {
  const { connection } = files[index] as DownloadFile;
  const parts = files.filter((each) => each.connection === connection).length;
  const part = files.slice(0, index + 1).filter((each) => each.connection === connection).length;
  return parts === 1 ? connection : `${connection}, part ${part} of ${parts}`;
}
