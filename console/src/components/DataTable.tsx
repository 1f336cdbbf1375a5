import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { formatNumber, formatPlain } from "@/format.ts";
import { useZone } from "@/shell/timeZone.ts";
import { joinClasses } from "./classes.ts";
import { filterRows } from "./columnFilters.ts";
import { type Column, type Sorting, sortRows, toggleSorting } from "./columns.ts";
import css from "./DataTable.module.css";
import { escapeInvisible } from "./invisible.ts";
import { TableHead } from "./TableHead.tsx";
import { Time } from "./Time.tsx";
import { VisibleText } from "./VisibleText.tsx";
import { computeSlice, scrollToShow } from "./virtual.ts";

interface Props<Row> {
  /** Description of the rows, for screen readers. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** Unique and stable. */
  rowKey: (row: Row, index: number) => string;
  /** Called with a clicked row, or on Enter; makes rows selectable. */
  onOpen?: (row: Row) => void;
  /** Shown if there are no rows. */
  empty?: ComponentChildren;
  /** Maximum height in pixels; longer tables scroll. */
  height?: number;
  sorting?: Sorting;
  /** Tells whether a row is open in a panel. */
  selected?: ((row: Row) => boolean) | undefined;
  /** Called when the reader scrolls near the last row, to load the next page. */
  onEnd?: () => void;
  /** Lets the reader change the widths of columns and filter by them. */
  adjustable?: boolean;
}

const ROW = 32;
const HEAD = 33;
const FILTERS = 41;

/** A table of any length. It draws only visible rows, sorts by column, and supports the keyboard. */
export function DataTable<Row>(props: Props<Row>) {
  const { label, columns, rows, rowKey, onOpen, empty, height = 560, sorting, selected, onEnd } = props;
  const { adjustable = false } = props;
  const [by, setBy] = useState(sorting);
  const [filters, setFilters] = useState(NO_FILTERS);
  const [widths, setWidths] = useState(NO_WIDTHS);
  const [top, setTop] = useState(0);
  const [chosen, setChosen] = useState<{ row: Row; key: string }>();
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const zone = useZone();
  const matching = useMemo(() => filterRows(rows, columns, filters, zone), [rows, columns, filters, zone]);
  const ordered = useMemo(() => sortRows(matching, columns, by), [matching, columns, by]);
  const drawn = computeSlice(ordered.length, ROW, top, height);
  const grid = onOpen !== undefined;
  // A row that can be opened stays active if a newer list contains it, at whatever place.
  const active = useMemo(
    () =>
      chosen === undefined
        ? -1
        : ordered.findIndex((row, index) => row === chosen.row || (grid && rowKey(row, index) === chosen.key)),
    [ordered, chosen, grid],
  );
  const activate = (index: number, row: Row) => setChosen({ row, key: rowKey(row, index) });
  const atEnd = drawn.end === ordered.length;
  useEffect(() => {
    if (atEnd) {
      onEnd?.();
    }
  }, [atEnd, ordered.length]);
  if (rows.length === 0 && empty) {
    return <>{empty}</>;
  }
  const move = (event: KeyboardEvent) => {
    const page = Math.floor(height / ROW) - 2;
    const to = findTarget(event.key, active, page, ordered.length);
    const row = ordered[active];
    const next = to === undefined ? undefined : ordered[to];
    if (event.target !== event.currentTarget) {
      return;
    }
    if (event.key === "Enter" && row !== undefined) {
      onOpen?.(row);
    } else if (to !== undefined && next !== undefined && onOpen && box.current) {
      event.preventDefault();
      activate(to, next);
      box.current.scrollTop = scrollToShow(
        to,
        ROW,
        box.current.scrollTop,
        box.current.clientHeight,
        adjustable ? HEAD + FILTERS : HEAD,
      );
    }
  };
  const widthOf = (column: Column<Row>) => widths.get(column.key) ?? column.width;
  const total = columns.reduce((sum, column) => sum + (widthOf(column) ?? 120), 0);
  const current = active >= 0 ? { "aria-activedescendant": `${id}-${active}` } : {};
  const boxed = grid
    ? ({ role: "grid", "aria-rowcount": ordered.length + 1, ...current } as const)
    : ({ role: "region" } as const);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the spread attributes contain its role
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: as above
    <div
      ref={box}
      class={css.box}
      style={{ maxHeight: `${height}px` }}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must reach a scrolling area
      tabIndex={0}
      {...boxed}
      aria-label={label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={move}
    >
      <table
        class={css.table}
        style={widths.size > 0 ? { width: `${total}px` } : { minWidth: `${total}px` }}
        role={grid ? "presentation" : undefined}
        aria-rowcount={grid ? undefined : ordered.length + 1}
      >
        <colgroup>
          {columns.map((column) => {
            const width = widthOf(column);
            return <col key={column.key} style={width ? { width: `${width}px` } : undefined} />;
          })}
        </colgroup>
        <TableHead
          {...{ columns, by, grid }}
          onSort={(key) => setBy(toggleSorting(key, by))}
          {...(adjustable ? { filters, onFilter: setFilters, onResize: setWidths } : {})}
        />
        <tbody>
          <Spacer height={drawn.before} />
          {ordered.slice(drawn.start, drawn.end).map((row, offset) => {
            const index = drawn.start + offset;
            return (
              <tr
                key={rowKey(row, index)}
                id={`${id}-${index}`}
                role={grid ? "row" : undefined}
                class={joinClasses(grid && css.open, (index === active || selected?.(row)) && css.active)}
                aria-rowindex={index + 2}
                aria-selected={grid ? index === active || selected?.(row) === true : undefined}
                onClick={() => {
                  activate(index, row);
                  onOpen?.(row);
                }}
              >
                {columns.map((column) => (
                  <Cell key={column.key} column={column} row={row} grid={grid} />
                ))}
              </tr>
            );
          })}
          <Spacer height={drawn.after} />
        </tbody>
      </table>
    </div>
  );
}

const NO_FILTERS: ReadonlyMap<string, string> = new Map();
const NO_WIDTHS: ReadonlyMap<string, number> = new Map();

function Cell<Row>({ column, row, grid }: { column: Column<Row>; row: Row; grid: boolean }) {
  const code = column.type === "json" || column.type === "code";
  const text = column.render ? undefined : formatPlain(column.value(row));
  return (
    <td
      role={grid ? "gridcell" : undefined}
      class={joinClasses(column.type === "number" && css.number, code && css.code)}
      title={text && text.length > 24 && column.type !== "time" ? escapeInvisible(text) : undefined}
    >
      {column.render ? column.render(row) : renderValue(column, row)}
    </td>
  );
}

function renderValue<Row>(column: Column<Row>, row: Row): ComponentChildren {
  const value = column.value(row);
  if (value === null || value === undefined) {
    return <span class={css.missing}>–</span>;
  }
  switch (column.type) {
    case "time":
      return <Time at={String(value)} />;
    case "number":
      return formatNumber(value);
    default:
      return <VisibleText text={formatPlain(value)} isName={column.type === "name"} />;
  }
}

function Spacer({ height }: { height: number }) {
  return height > 0 ? <tr class={css.room} style={{ height: `${height}px` }} /> : null;
}

/** Returns the row to move to on a key; undefined for other keys. */
function findTarget(key: string, active: number, page: number, rows: number): number | undefined {
  const steps: Record<string, number> = {
    ArrowDown: active + 1,
    ArrowUp: active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: rows - 1,
  };
  const to = steps[key];
  return to === undefined || rows === 0 ? undefined : Math.max(0, Math.min(rows - 1, to));
}
