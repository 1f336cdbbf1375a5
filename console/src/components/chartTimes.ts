import { formatLocalTime } from "@/format.ts";

const DAY = 86_400;
const MINUTE = 60;

/**
 * Writes the marks of a time axis in the reader's zone as the rest of the console does: as short as their distance
 * lets them be told apart, with the day at the first mark of each.
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

/** The time that the legend shows for the place under the pointer. */
export function formatLegendTime(at: number | null | undefined): string {
  return at === null || at === undefined ? "–" : formatLocalTime(new Date(at * 1000).toISOString());
}
