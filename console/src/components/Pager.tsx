import { Button } from "./Button.tsx";
import css from "./Pager.module.css";

interface Props {
  /** The current range: "1–50 of 312". */
  text: string;
  /** Undefined if that page does not exist. */
  onPrevious?: (() => void) | undefined;
  onNext?: (() => void) | undefined;
}

/** Buttons for the previous and next page. */
export function Pager({ text, onPrevious, onNext }: Props) {
  return (
    <nav class={css.pager} aria-label="Pages">
      <span>{text}</span>
      <Button disabled={!onPrevious} onClick={() => onPrevious?.()}>
        Previous
      </Button>
      <Button disabled={!onNext} onClick={() => onNext?.()}>
        Next
      </Button>
    </nav>
  );
}
