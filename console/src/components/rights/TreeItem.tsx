import type { ComponentChildren } from "preact";
import { Icon } from "@/components/Icon.tsx";
import type { TickState } from "./areas.ts";
import css from "./ScopeTree.module.css";

interface Props {
  name: string;
  ticked: TickState;
  /** True for the one item in the tab order. */
  current: boolean;
  /** For an area: whether its rights are shown. */
  open?: boolean | undefined;
  /** For an area: the id of the group of its visible rights. */
  owns?: string | undefined;
  title?: string | undefined;
  onFocus: () => void;
  onTick: () => void;
  children: ComponentChildren;
}

/** A checkbox with its label, as an item of a tree; the tree handles the keyboard. */
export function TreeItem({ name, ticked, current, open, owns, title, onFocus, onTick, children }: Props) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keyboard
    <div
      role="treeitem"
      class={css.item}
      data-item={name}
      aria-checked={ticked}
      aria-expanded={open}
      aria-owns={owns}
      tabIndex={current ? 0 : -1}
      title={title}
      onFocus={onFocus}
      onClick={onTick}
    >
      <span class={ticked === "false" ? css.box : css.ticked} aria-hidden="true">
        {ticked === "true" && <Icon name="check" />}
        {ticked === "mixed" && <span class={css.dash} />}
      </span>
      {children}
    </div>
  );
}
