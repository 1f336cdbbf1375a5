import type { Download } from "@/api/downloads.ts";
import type { Turn } from "@/components/usePolling.ts";

const SOONEST_MS = 1000;
const LATEST_MS = 15_000;
/** Links live 15 minutes; the list is fetched again before they end. */
const LINKS_MS = 10 * 60_000;
const GROWTH = 1.6;

/** When to look at the downloads again: soon while one gets on, later and later while none does. */
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

/** How far the downloads are, as a text to compare; links change each time and do not count. */
function summarizeProgress(downloads: readonly Download[] | undefined): string {
  return JSON.stringify(downloads?.map(({ downloadId, status, progress }) => [downloadId, status, progress]));
}
