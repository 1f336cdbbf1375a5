import type { ComponentChildren } from "preact";

export type ColumnType = "text" | "name" | "number" | "time" | "boolean" | "json" | "code";

/** A column of a DataTable. */
export interface Column<Row> {
  /** Unique; identifies the column for sorting. */
  key: string;
  title: string;
  /** A word after the title, such as a type or unit. */
  note?: string;
  /** Decides alignment, form and order; the default is `text`; a `name` shows all its spaces. */
  type?: ColumnType;
  value: (row: Row) => unknown;
  /** Renders the cell; sorting still uses the value. */
  render?: (row: Row) => ComponentChildren;
  /** Pixels; columns without one share the rest. */
  width?: number;
  /** False if order has no meaning. */
  sortable?: boolean;
}

/** The sorting of a table. */
export interface Sorting {
  key: string;
  direction: "ascending" | "descending";
}

const KUSTO: Record<string, ColumnType> = {
  datetime: "time",
  int: "number",
  long: "number",
  real: "number",
  decimal: "number",
  bool: "boolean",
  dynamic: "json",
  guid: "code",
};

/** Converts a Kusto scalar type to a column type. */
export function toColumnType(kusto: string): ColumnType {
  return KUSTO[kusto] ?? "text";
}

/** Sorts rows by a column, stably; missing values are last in both directions. */
export function sortRows<Row>(rows: readonly Row[], columns: readonly Column<Row>[], by?: Sorting): readonly Row[] {
  const column = columns.find((each) => each.key === by?.key);
  if (!by || !column) {
    return rows;
  }
  const sign = by.direction === "ascending" ? 1 : -1;
  const keyed = rows.map((row) => ({ row, key: toSortKey(column.value(row), column.type) }));
  keyed.sort((left, right) => compare(left.key, right.key, sign));
  return keyed.map((each) => each.row);
}

/** Returns the sorting after a click on a column's head: ascending, descending, then unsorted. */
export function toggleSorting(key: string, by?: Sorting): Sorting | undefined {
  if (by?.key !== key) {
    return { key, direction: "ascending" };
  }
  return by.direction === "ascending" ? { key, direction: "descending" } : undefined;
}

/**
 * Returns a number to compare with others: a whole number beyond 2^53, which query results contain as text, with all its
 * digits; NaN for other values.
 */
export function toExactValue(value: unknown): number | bigint {
  const number = Number(value);
  if (!Number.isInteger(number) || Number.isSafeInteger(number)) {
    return number;
  }
  return BigInt(typeof value === "string" && /^-?\d+$/.test(value) ? value : number);
}

type SortKey = number | bigint | string | null;

function toSortKey(value: unknown, type: ColumnType = "text"): SortKey {
  if (value === null || value === undefined || value === "") {
    return null;
  }
  if (type === "number") {
    return toExactValue(value);
  }
  if (type === "time") {
    return new Date(String(value)).getTime();
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function compare(left: SortKey, right: SortKey, sign: number): number {
  if (left === null || right === null) {
    return Number(left === null) - Number(right === null);
  }
  if (typeof left !== "string" && typeof right !== "string") {
    return sign * (Number(left > right) - Number(left < right));
  }
  return sign * ORDER.compare(String(left), String(right));
}

const ORDER = new Intl.Collator("en", { numeric: true });
