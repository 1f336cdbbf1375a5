import { formatTime } from "@/format.ts";

const DAY = 86_400;
const MINUTE = 60;

/**
 * Formats the marks of a time axis in the zone of the page: as short as is unique, with the day at its first mark.
 * @param ticks seconds since 1970, ascending
 * @param step seconds between them
 */
export function formatTicks(ticks: readonly number[], step: number): string[] {
  let before = "";
  return ticks.map((tick) => {
    const [day = "", clock = ""] = formatTime(tick * 1000, step < 1).split(" ");
    const first = day !== before;
    before = day;
    if (step >= DAY) {
      return day;
    }
    const text = step >= MINUTE ? clock.slice(0, 5) : clock;
    return first ? `${text}\n${day}` : text;
  });
}
