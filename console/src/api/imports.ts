import type { DownloadFile } from "@/api/downloads.ts";
import type { BackgroundJob } from "@/components/jobs.ts";

export type ImportFormat = "csv" | "ndjson" | "parquet";

/** Columns of a file that have a meaning; absent properties have their default. */
export interface ImportMapping {
  timestamp: string;
  timestampFormat?: "rfc3339" | "epochSeconds" | "epochMilliseconds";
  device?: string;
  messageId?: string;
  columns?: string[];
  delimiter?: string;
  decimal?: "." | ",";
  timeZone?: string;
}

/** The mapping of a stored import; null means the default. */
export type StoredMapping = { [Name in keyof Required<ImportMapping>]: Required<ImportMapping>[Name] | null };

/** An import of history. */
export interface HistoryImport extends BackgroundJob {
  importId: string;
  connection: string;
  format: ImportFormat;
  fileName: string;
  mapping: StoredMapping;
  startedAt: string | null;
  uploadExpiresAt: string;
  progress: { rows: number; bytesDone: number | null; bytesTotal: number | null };
  accepted: number;
  duplicates: number;
  rejected: number;
  /** The file of rejected rows. */
  files: DownloadFile[];
}

/** A new import with the signed link for its file. */
export interface CreatedImport extends HistoryImport {
  uploadUrl: string;
  uploadHeaders: Record<string, string>;
}

/** First messages of an uploaded file, and its problems. */
export interface ImportPreview {
  columns: string[];
  /** A payload is JSON text if it contains whole numbers beyond 2^53. */
  messages: { timestamp: string; deviceId: string; messageId: string; payload: Record<string, unknown> | string }[];
  problems: { row: number | null; message: string }[];
}
