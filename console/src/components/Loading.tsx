import css from "./Loading.module.css";

interface Props {
  /** Description for screen readers. */
  label?: string;
  rows?: number;
}

/** A placeholder for rows that are loading. */
export function Loading({ label = "Loading", rows = 5 }: Props) {
  return (
    <div class={css.loading} role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} class={css.bar} />
      ))}
    </div>
  );
}
