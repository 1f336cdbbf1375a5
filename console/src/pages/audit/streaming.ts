// Reading of long bodies with progress.

import { readBody } from "@/api/index.ts";

/** A complete body. */
export interface StreamedBody {
  readonly blob: Blob;
  /** Bytes. */
  readonly size: number;
}

/**
 * Reads a reply to its end.
 *
 * @param told receives the number of bytes so far.
 * @throws ApiError if the connection breaks.
 */
export async function readStream(reply: Response, told: (received: number) => void): Promise<StreamedBody> {
  return await readBody(reply, () => readChunks(reply, told));
}

async function readChunks(reply: Response, told: (received: number) => void): Promise<StreamedBody> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const reader = reply.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    chunks.push(part.value);
    size += part.value.length;
    told(size);
  }
  return { blob: new Blob(chunks, { type: reply.headers.get("content-type") ?? "" }), size };
}
