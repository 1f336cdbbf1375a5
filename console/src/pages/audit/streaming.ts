// Bodies that are long: read as they come, so that the reader sees them grow.

import { whole } from "@/api/index.ts";

/** A body that was read to its end. */
export interface Streamed {
  readonly blob: Blob;
  /** Bytes. */
  readonly size: number;
}

/**
 * Reads a reply to its end.
 *
 * @param told hears how many bytes there are so far.
 * @throws ApiError where the connection is cut before the end.
 */
export async function streamed(reply: Response, told: (received: number) => void): Promise<Streamed> {
  return await whole(reply, () => chunked(reply, told));
}

async function chunked(reply: Response, told: (received: number) => void): Promise<Streamed> {
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
