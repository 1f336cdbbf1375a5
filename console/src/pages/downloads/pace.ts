import type { Download } from "@/api/downloads.ts";
import type { Turn } from "@/components/usePolling.ts";

const SOONEST_MS = 1000;
const LATEST_MS = 15_000;
/** Links expire after 15 minutes; the list is reloaded before. */
const LINKS_MS = 10 * 60_000;
const GROWTH = 1.6;

/** Returns the pause until the next fetch: short during progress, longer and longer without it. */
export function choosePause({ data, before, failed, waited }: Turn<readonly Download[]>): number {
  if (!failed && !data?.some(isUnfinished)) {
    return LINKS_MS;
  }
  if (!failed && summarizeProgress(data) !== summarizeProgress(before)) {
    return SOONEST_MS;
  }
  return Math.min(Math.max(SOONEST_MS, waited * GROWTH), LATEST_MS);
}

/** Tells whether a download may still change. */
export function isUnfinished(download: Download): boolean {
  return download.status === "pending" || download.status === "running";
}

/** Returns the progress of the downloads as a comparable text, without the links, which always change. */
function summarizeProgress(downloads: readonly Download[] | undefined): string {
  return JSON.stringify(downloads?.map(({ downloadId, status, progress }) => [downloadId, status, progress]));
}
