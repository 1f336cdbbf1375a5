export type DownloadFormat = "csv" | "jsonl" | "parquet";
export type DownloadStatus = "pending" | "running" | "completed" | "failed" | "cancelled";

/** A file of a download; its link needs no token and expires after minutes. */
export interface DownloadFile {
  connection: string;
  url: string;
  urlExpiresAt: string;
  rows: number;
  bytes: number;
  sha256: string;
}

/** A cold download. */
export interface Download {
  downloadId: string;
  status: DownloadStatus;
  statusUrl: string;
  format: DownloadFormat;
  dateRange: { start: string; end: string };
  createdAt: string;
  progress: { connectionsDone: number; connectionsTotal: number; rows: number };
  files: DownloadFile[];
  expiresAt: string;
  error: string | null;
}
