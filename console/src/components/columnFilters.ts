// Filters of the columns of a table.
import { formatPlain, formatTime } from "@/format.ts";
import { getZone, type Zone } from "@/shell/timeZone.ts";
import { type Column, type ColumnType, toExactValue } from "./columns.ts";

/** Length of a fraction with its point, padded with zeros: nanoseconds. */
const DIGITS = 10;
const COMPARISON = /^(>=|<=|!=|>|<|=)\s*(.+)$/;

/**
 * Returns the rows that match every filter. A filter is a part of the text in any case, or a comparison: `> 5`, `<= 5`,
 * `= text`, `!= text`. An unfinished comparison matches all rows.
 * @param filters texts by the keys of columns
 * @param zone the zone in which times are compared
 */
export function filterRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  filters: ReadonlyMap<string, string>,
  zone: Zone = getZone(),
): readonly Row[] {
  const tests = columns.flatMap((column) => {
    const test = buildTest((filters.get(column.key) ?? "").trim(), column.type, zone);
    return test === undefined ? [] : [(row: Row) => test(column.value(row))];
  });
  return tests.length === 0 ? rows : rows.filter((row) => tests.every((test) => test(row)));
}

function buildTest(
  filter: string,
  type: ColumnType | undefined,
  zone: Zone,
): ((value: unknown) => boolean) | undefined {
  const [, operator, operand = ""] = COMPARISON.exec(filter) ?? [];
  if (operator !== undefined) {
    const wanted = toOperand(operand, type);
    return (value) => compare(toComparable(value, operand.length, type, zone), operator, wanted);
  }
  const words = type === "number" ? filter.replaceAll(",", "") : filter.toLowerCase();
  const unfinished = /^[<>=!]*$/.test(filter);
  return unfinished ? undefined : (value) => formatShown(value, type, zone).includes(words);
}

type Comparable = string | number | bigint;

function compare(left: Comparable | undefined, operator: string, right: Comparable): boolean {
  if (left === undefined) {
    return operator === "!=";
  }
  switch (operator) {
    case ">":
      return left > right;
    case ">=":
      return left >= right;
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case "=":
      return left === right;
    default:
      return left !== right;
  }
}

function toOperand(text: string, type: ColumnType | undefined): Comparable {
  if (type === "number") {
    return toExactValue(text.replaceAll(",", ""));
  }
  return type === "time" ? text.replace("T", " ") : text.toLowerCase();
}

/** A time is compared by as much of it as was entered, so that `< 2026-01-06` means a day. */
function toComparable(
  value: unknown,
  length: number,
  type: ColumnType | undefined,
  zone: Zone,
): Comparable | undefined {
  if (value === null || value === undefined) {
    return undefined;
  }
  if (type === "number") {
    return toExactValue(value);
  }
  const shown = formatShown(value, type, zone);
  return type === "time" && typeof value === "string" ? addFraction(shown, value).slice(0, length) : shown;
}

/** Appends the fraction of a second of an RFC 3339 time, which the table does not show. */
function addFraction(shown: string, value: string): string {
  const fraction = /\.\d+/.exec(value)?.[0] ?? ".";
  return shown + fraction.padEnd(DIGITS, "0");
}

/** Formats a value as the table shows it. */
function formatShown(value: unknown, type: ColumnType | undefined, zone: Zone): string {
  return type === "time" && typeof value === "string"
    ? formatTime(value, false, zone)
    : formatPlain(value).toLowerCase();
}
