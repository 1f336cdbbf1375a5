// What this tab started, by download; the service does not tell.
import { recall, remember } from "@/session/tabMemory.ts";

const NAME = "downloads";
const MOST = 200;

export function noteStarted(downloadId: string, source: string): void {
  const newest = Object.entries(all()).slice(1 - MOST);
  remember(NAME, { ...Object.fromEntries(newest), [downloadId]: source });
}

/** Gives what a download is of, undefined where another tab started it. */
export function startedSource(downloadId: string): string | undefined {
  const found = all()[downloadId];
  return typeof found === "string" ? found : undefined;
}

function all(): Record<string, unknown> {
  const found = recall(NAME);
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
}
