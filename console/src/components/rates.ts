import type { Connection } from "@/api/catalog.ts";

/** The received messages of all connections at one time. */
export interface Count {
  /** Milliseconds since 1970. */
  at: number;
  received: ReadonlyMap<string, number>;
}

const LONGEST_MS = 30_000;
/** Maximum of the service's count. */
const SATURATED = 2 ** 31 - 1;

type Counted = Pick<Connection, "id" | "stats">;

/** Adds a count and removes those that are too old for a current rate, except one for comparison. */
export function addCount(before: readonly Count[], connections: readonly Counted[], now: number): readonly Count[] {
  const received = new Map(connections.map(({ id, stats }) => [id, stats?.messagesReceived ?? 0]));
  const recent = before.filter(({ at }) => now - at <= LONGEST_MS);
  return [...(recent.length > 0 ? recent : before.slice(-1)), { at: now, received }];
}

/** Returns a connection's messages per second over the last counts; null if unknown. */
export function computeRate(counts: readonly Count[], id: string): number | null {
  const [first, last] = [counts[0], counts.at(-1)];
  const from = first?.received.get(id);
  const to = last?.received.get(id);
  if (!first || !last || from === undefined || to === undefined || first.at >= last.at) {
    return null;
  }
  return to >= SATURATED || to < from ? null : ((to - from) * 1000) / (last.at - first.at);
}

/** 0, 0.2, 3.0, 1,200 */
export function formatRate(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : value === 0 ? "0" : value.toFixed(value < 0.1 ? 2 : 1);
}
