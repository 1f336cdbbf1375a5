// Upload of a file in blocks, with the requests of Azure Blob Storage.

const BLOCK_BYTES = 8 * 1024 * 1024;
const MAX_TRIES = 5;
const FIRST_PAUSE_MS = 1000;

export interface UploadOptions {
  /** Called with the number of bytes that were sent. */
  onProgress: (bytes: number) => void;
  signal: AbortSignal;
  /** Size of a block; a smaller one for tests. */
  blockBytes?: number;
  pause?: (ms: number) => Promise<void>;
}

/** Sends a file to a signed link in blocks; a block that fails is sent again. */
export async function uploadFile(url: string, file: Blob, options: UploadOptions): Promise<void> {
  const size = options.blockBytes ?? BLOCK_BYTES;
  const names: string[] = [];
  for (let start = 0; start < file.size || names.length === 0; start += size) {
    const name = btoa(String(names.length).padStart(6, "0"));
    await putWithRetry(
      `${url}&comp=block&blockid=${encodeURIComponent(name)}`,
      file.slice(start, start + size),
      options,
    );
    names.push(name);
    options.onProgress(Math.min(start + size, file.size));
  }
  const list = names.map((name) => `<Latest>${name}</Latest>`).join("");
  await putWithRetry(`${url}&comp=blocklist`, new Blob([`<BlockList>${list}</BlockList>`]), options);
}

async function putWithRetry(url: string, body: Blob, options: UploadOptions): Promise<void> {
  const pause = options.pause ?? sleep;
  for (let tries = 1; ; tries += 1) {
    const failure = await put(url, body, options.signal);
    if (failure === undefined) {
      return;
    }
    if (options.signal.aborted || !failure.retry || tries === MAX_TRIES) {
      throw new Error(failure.message);
    }
    await pause(FIRST_PAUSE_MS * 2 ** (tries - 1));
  }
}

async function put(
  url: string,
  body: Blob,
  signal: AbortSignal,
): Promise<{ message: string; retry: boolean } | undefined> {
  try {
    const reply = await fetch(url, { method: "PUT", body, signal, credentials: "omit", cache: "no-store" });
    if (reply.ok) {
      return undefined;
    }
    const problem = (await reply.json().catch(() => undefined)) as { detail?: string } | undefined;
    const message = problem?.detail ?? `The upload failed with status ${reply.status}.`;
    return { message, retry: reply.status >= 500 && reply.status !== 507 };
  } catch {
    return { message: "The upload was interrupted.", retry: true };
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
