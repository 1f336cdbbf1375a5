import { Button } from "./Button.tsx";
import css from "./Pager.module.css";

interface Props {
  /** What is shown: "1–50 of 312". */
  text: string;
  /** Undefined where there is no such page. */
  onPrevious?: (() => void) | undefined;
  onNext?: (() => void) | undefined;
}

/** Steps through pages. */
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
