import type { Series } from "@/live/history.ts";

/** Series that are drawn at most; more are not told apart. */
export const MOST_DRAWN = 12;
const LANES_AT_FIRST = 3;
const SERIES_AT_FIRST = 9;

/** A part of the chart of its own: the series of one field, which share a scale. */
export interface Group {
  field: string;
  series: Series[];
}

/** Reads which series an address asks for; undefined where it leaves that open. */
export function parseChoice(query: URLSearchParams): readonly string[] | undefined {
  const text = query.get("fields");
  return text === null ? undefined : text.split(",").filter(Boolean).slice(0, MOST_DRAWN);
}

/** Writes them; "," stands for none at all. */
export function formatChoice(ids: readonly string[]): string {
  return ids.length === 0 ? "," : ids.join(",");
}

/** What to draw where nobody chose: the first few fields that came, of the devices that came first. */
export function chooseDefault(series: readonly Series[]): readonly string[] {
  const fields = new Set<string>();
  const chosen: string[] = [];
  for (const each of series) {
    if (fields.has(each.field) || fields.size < LANES_AT_FIRST) {
      fields.add(each.field);
      chosen.push(each.id);
    }
    if (chosen.length === SERIES_AT_FIRST) {
      break;
    }
  }
  return chosen;
}

/** Groups the chosen series by field, in the order of the choice. */
export function groupByField(series: readonly Series[], ids: readonly string[]): Group[] {
  const groups = new Map<string, Group>();
  for (const id of ids) {
    const found = series.find((each) => each.id === id);
    if (found) {
      const group = groups.get(found.field) ?? { field: found.field, series: [] };
      group.series.push(found);
      groups.set(found.field, group);
    }
  }
  return [...groups.values()];
}

/** What a series is called beside others: its device, with its connection where that does not tell. */
export function buildSeriesName({ connection, device }: Series): string {
  return device.startsWith(connection) ? device : `${connection} · ${device}`;
}
