import css from "./DataTable.module.css";

interface Props {
  /** Key of the column. */
  name: string;
  title: string;
  /** Called with the widths of all columns. */
  onResize: (widths: ReadonlyMap<string, number>) => void;
}

const NARROWEST = 48;
const STEP = 16;

/** The edge of a column, which changes its width: by dragging, or by arrow keys. */
export function ColumnHandle({ name, title, onResize }: Props) {
  const drag = (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    const before = measureColumns(handle);
    const start = event.clientX;
    const move = ({ clientX }: PointerEvent) => onResize(resize(before, name, clientX - start));
    const end = () => {
      handle.removeEventListener("pointermove", move);
      handle.removeEventListener("pointerup", end);
      handle.removeEventListener("pointercancel", end);
    };
    event.preventDefault();
    handle.setPointerCapture(event.pointerId);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", end);
    handle.addEventListener("pointercancel", end);
  };
  const press = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? STEP : event.key === "ArrowLeft" ? -STEP : 0;
    if (step !== 0) {
      event.preventDefault();
      onResize(resize(measureColumns(event.currentTarget as HTMLElement), name, step));
    }
  };
  return (
    <button
      type="button"
      class={css.handle}
      aria-label={`Width of ${title}: arrow keys change it`}
      onPointerDown={drag}
      onKeyDown={press}
    />
  );
}

/** Returns widths in which one column is wider or narrower. */
export function resize(widths: ReadonlyMap<string, number>, name: string, by: number): ReadonlyMap<string, number> {
  return new Map(widths).set(name, Math.max(NARROWEST, (widths.get(name) ?? 0) + by));
}

/** Measures all columns of a handle's table, so that the others keep their width. */
function measureColumns(handle: HTMLElement): ReadonlyMap<string, number> {
  const heads = handle.closest("tr")?.querySelectorAll<HTMLElement>("th") ?? [];
  return new Map([...heads].map((head) => [head.dataset.column ?? "", head.offsetWidth]));
}
