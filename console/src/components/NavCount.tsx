import css from "./NavCount.module.css";

interface Props {
  /** The number: `12`, `100+`. */
  text: string;
  /** The counted state, for screen readers: `waiting`. */
  of: string;
}

/** A number next to an entry of the navigation. */
export function NavCount({ text, of }: Props) {
  return (
    <span class={css.count}>
      {text}
      <span class="visually-hidden"> {of}</span>
    </span>
  );
}
