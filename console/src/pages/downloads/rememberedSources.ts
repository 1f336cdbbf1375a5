// Sources of the downloads that this tab started; the service does not return them.
import { recall, remember } from "@/session/tabMemory.ts";

const NAME = "downloads";
const MOST = 200;

export function rememberSource(downloadId: string, source: string): void {
  const newest = Object.entries(recallSources()).slice(1 - MOST);
  remember(NAME, { ...Object.fromEntries(newest), [downloadId]: source });
}

/** Returns the source of a download, undefined if another tab started it. */
export function recallSource(downloadId: string): string | undefined {
  const found = recallSources()[downloadId];
  return typeof found === "string" ? found : undefined;
}

function recallSources(): Record<string, unknown> {
  const found = recall(NAME);
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
}
