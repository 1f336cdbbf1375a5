import type { ComponentChildren } from "preact";
import { ColumnHandle } from "./ColumnHandle.tsx";
import { joinClasses } from "./classes.ts";
import type { Column, Sorting } from "./columns.ts";
import css from "./DataTable.module.css";
import { Icon } from "./Icon.tsx";

interface Props<Row> {
  columns: readonly Column<Row>[];
  by: Sorting | undefined;
  /** Whether the table has the role of a grid. */
  grid: boolean;
  onSort: (key: string) => void;
  /** The filters by the keys of columns; without it there are none. */
  filters?: ReadonlyMap<string, string>;
  onFilter?: (filters: ReadonlyMap<string, string>) => void;
  /** Called with the widths of all columns. */
  onResize?: (widths: ReadonlyMap<string, number>) => void;
}

/** The titles of the columns, which sort, and their filters. */
export function TableHead<Row>({ columns, by, grid, onSort, filters, onFilter, onResize }: Props<Row>) {
  return (
    <thead>
      <tr role={grid ? "row" : undefined} aria-rowindex={1}>
        {columns.map((column) => (
          <Head key={column.key} {...{ column, by, grid }} onSort={() => onSort(column.key)}>
            {onResize && <ColumnHandle name={column.key} title={column.title} onResize={onResize} />}
          </Head>
        ))}
      </tr>
      {filters && onFilter && (
        <tr class={css.filters}>
          {columns.map(({ key, title, type }) => (
            <td key={key}>
              <input
                type="search"
                aria-label={`Filter ${title}`}
                placeholder={type === "number" ? "> 5" : "Filter"}
                title="A part of the text, or a comparison: > 5, <= 5, = text, != text"
                value={filters.get(key) ?? ""}
                spellcheck={false}
                autocomplete="off"
                onInput={(event) => onFilter(new Map(filters).set(key, event.currentTarget.value))}
              />
            </td>
          ))}
        </tr>
      )}
    </thead>
  );
}

interface HeadProps<Row> {
  column: Column<Row>;
  by: Sorting | undefined;
  grid: boolean;
  onSort: () => void;
  children: ComponentChildren;
}

function Head<Row>({ column, by, grid, onSort, children }: HeadProps<Row>) {
  const direction = by?.key === column.key ? by.direction : undefined;
  const sortable = column.sortable !== false;
  return (
    <th
      scope="col"
      role={grid ? "columnheader" : undefined}
      class={joinClasses(column.type === "number" && css.number)}
      aria-sort={sortable ? (direction ?? "none") : undefined}
      data-column={column.key}
    >
      {sortable ? (
        <button type="button" onClick={onSort}>
          <span>
            {column.title}
            {column.note && <small> {column.note}</small>}
          </span>
          {direction && <Icon name={direction === "ascending" ? "up" : "down"} />}
        </button>
      ) : (
        column.title
      )}
      {children}
    </th>
  );
}
