import type { BackgroundJob } from "@/components/jobs.ts";

export type DownloadFormat = "csv" | "jsonl" | "parquet";

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
export interface Download extends BackgroundJob {
  downloadId: string;
  format: DownloadFormat;
  dateRange: { start: string; end: string };
  progress: { connectionsDone: number; connectionsTotal: number; rows: number };
  files: DownloadFile[];
}
