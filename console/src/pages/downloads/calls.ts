import type { Download, DownloadFormat } from "@/api/downloads.ts";
import { api, at } from "@/api/index.ts";

/** What is to be downloaded: a connection, a surface, or the connection of a surface. */
export interface Source {
  kind: "connection" | "surface" | "within";
  connection: string;
  surface: string;
}

export interface Wanted {
  source: Source;
  format: DownloadFormat;
  dateRange: { start: string; end: string };
}

/** What a source is called in a list. */
export function named({ kind, connection, surface }: Source): string {
  return { connection, surface: `${surface} (surface)`, within: `${connection} in ${surface}` }[kind];
}

/** Starts a download. */
export function start({ source, format, dateRange }: Wanted): Promise<Download> {
  return api.post<Download>(address(source), { format, dateRange });
}

export async function list(signal: AbortSignal): Promise<Download[]> {
  return (await api.get<{ downloads: Download[] }>("/oi-api/downloads", { signal })).downloads;
}

export function one(id: string): Promise<Download> {
  return api.get<Download>(at`/oi-api/downloads/${id}`);
}

export function cancel(id: string): Promise<void> {
  return api.delete(at`/oi-api/downloads/${id}`);
}

function address({ kind, connection, surface }: Source): string {
  switch (kind) {
    case "connection":
      return at`/oi-api/downloads/data-connections/${connection}`;
    case "surface":
      return at`/oi-api/downloads/surfaces/${surface}`;
    case "within":
      return at`/oi-api/downloads/surfaces/${surface}/connection/${connection}`;
  }
}
