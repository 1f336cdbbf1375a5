import type { Series } from "@/live/history.ts";

/** Maximum number of series, limited by distinguishable colours. */
export const MOST_DRAWN = 12;
const LANES_AT_FIRST = 3;
const SERIES_AT_FIRST = 9;

/** The series of one field, which share a chart and scale. */
export interface Group {
  field: string;
  series: Series[];
}

/** Parses the selected series of an address; undefined without a selection. */
export function parseChoice(query: URLSearchParams): readonly string[] | undefined {
  const text = query.get("fields");
  return text === null ? undefined : text.split(",").filter(Boolean).slice(0, MOST_DRAWN);
}

/** Formats the selected series for an address; "," means none. */
export function formatChoice(ids: readonly string[]): string {
  return ids.length === 0 ? "," : ids.join(",");
}

/** Chooses the initial series: the first few fields of the first devices. */
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

/** Returns the name of a series: its device, with the connection if they differ. */
export function buildSeriesName({ connection, device }: Series): string {
  return device.startsWith(connection) ? device : `${connection} · ${device}`;
}
