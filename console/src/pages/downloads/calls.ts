import type { Download, DownloadFormat } from "@/api/downloads.ts";
import { api, formatPath } from "@/api/index.ts";

/** Source of a download: a connection, a surface, or the connection of a surface. */
export interface Source {
  kind: "connection" | "surface" | "within";
  connection: string;
  surface: string;
}

export interface DownloadRequest {
  source: Source;
  format: DownloadFormat;
  dateRange: { start: string; end: string };
}

/** Returns the name of a source. */
export function describeSource({ kind, connection, surface }: Source): string {
  return { connection, surface: `${surface} (surface)`, within: `${connection} in ${surface}` }[kind];
}

/** Starts a download from the form. A repeat with the same idempotency key returns the same download. */
export function startDownload(
  { source, format, dateRange }: DownloadRequest,
  idempotencyKey: string,
): Promise<Download> {
  const headers = { "Idempotency-Key": idempotencyKey };
  return api.post<Download>(buildSourcePath(source), { format, dateRange }, { headers });
}

export async function fetchDownloads(signal: AbortSignal): Promise<Download[]> {
  return (await api.get<{ downloads: Download[] }>("/oi-api/downloads", { signal })).downloads;
}

export function fetchDownload(id: string): Promise<Download> {
  return api.get<Download>(formatPath`/oi-api/downloads/${id}`);
}

export function cancelDownload(id: string): Promise<void> {
  return api.delete(formatPath`/oi-api/downloads/${id}`);
}

function buildSourcePath({ kind, connection, surface }: Source): string {
  switch (kind) {
    case "connection":
      return formatPath`/oi-api/downloads/data-connections/${connection}`;
    case "surface":
      return formatPath`/oi-api/downloads/surfaces/${surface}`;
    case "within":
      return formatPath`/oi-api/downloads/surfaces/${surface}/connection/${connection}`;
  }
}
