import { formatLocalTime } from "@/format.ts";

const DAY = 86_400;
const MINUTE = 60;

/**
 * Formats the marks of a time axis in the reader's time zone: as short as is unique, with the day at its first mark.
 * @param ticks seconds since 1970, ascending
 * @param step seconds between them
 */
export function formatTicks(ticks: readonly number[], step: number): string[] {
  let before = "";
  return ticks.map((tick) => {
    const [day = "", clock = ""] = formatLocalTime(new Date(tick * 1000).toISOString(), step < 1).split(" ");
    const first = day !== before;
    before = day;
    if (step >= DAY) {
      return day;
    }
    const text = step >= MINUTE ? clock.slice(0, 5) : clock;
    return first ? `${text}\n${day}` : text;
  });
}

/** Formats the time under the pointer, for the legend. */
export function formatLegendTime(at: number | null | undefined): string {
  return at === null || at === undefined ? "–" : formatLocalTime(new Date(at * 1000).toISOString());
}
