// The signals that the columns of a result contain, by their names.
import type { Signal } from "@/api/connections.ts";
import { combineSignals } from "@/components/signals.ts";

/** Aggregations whose results have the unit and the range of their values. */
const AGGREGATION = /^(?:average|avg|mean|median|minimum|min|maximum|max|lowest|highest|first|last|any|p\d{1,2})_?/i;

/**
 * Finds the signal of a column: `temperature`, `avgTemperature` and `max_temperature` contain `temperature`.
 * Undefined if no signal has the name, or signals of this name have different units.
 */
export function findColumnSignal(column: string, signals: readonly Signal[]): Signal | undefined {
  const wanted = [column, column.replace(AGGREGATION, "")].map((name) => name.toLowerCase());
  for (const name of wanted) {
    const found = signals.filter((each) => each.name.toLowerCase() === name);
    const [first] = found;
    if (first) {
      const { unit, limits } = combineSignals(found);
      return found.every((each) => each.unit === first.unit) ? { ...first, unit: unit || null, ...limits } : undefined;
    }
  }
  return undefined;
}
