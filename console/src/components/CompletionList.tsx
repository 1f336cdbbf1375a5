import { useEffect, useRef } from "preact/hooks";
import css from "./CompletionList.module.css";
import type { Completion } from "./completions.ts";

interface Props {
  id: string;
  items: readonly Completion[];
  active: number;
  /** Pixels from the top, and characters from the left, of the text. */
  top: number;
  left: string;
  onAccept: (item: Completion) => void;
}

/** The completions at the caret. The focus stays in the text area, which names the active one. */
export function CompletionList({ id, items, active, top, left, onAccept }: Props) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active, items]);
  return (
    <ul
      ref={list}
      id={id}
      class={css.list}
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: the list of a text area with completions
      role="listbox"
      aria-label="Completions"
      style={{ top: `${top}px`, left }}
    >
      {items.map((item, index) => (
        // biome-ignore lint/a11y/useFocusableInteractive: the text area has the focus
        // biome-ignore lint/a11y/useKeyWithClickEvents: the text area handles the keys
        <li
          key={item.text}
          id={`${id}-${index}`}
          class={css.item}
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: as above
          role="option"
          aria-selected={index === active}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onAccept(item)}
        >
          <span>{item.text}</span>
          <small>{item.note}</small>
        </li>
      ))}
    </ul>
  );
}
