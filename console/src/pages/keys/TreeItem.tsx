import type { ComponentChildren } from "preact";
import { Icon } from "@/components/Icon.tsx";
import css from "./ScopeTree.module.css";
import type { TickState } from "./scopes.ts";

interface Props {
  name: string;
  ticked: TickState;
  /** The one item that Tab leads to. */
  current: boolean;
  /** For an area: whether its rights are shown. */
  open?: boolean | undefined;
  /** For an area: the id of the group of its rights, where they are shown. */
  owns?: string | undefined;
  title?: string | undefined;
  onFocus: () => void;
  onTick: () => void;
  children: ComponentChildren;
}

/** A box with its words, as an item of a tree; the tree takes the keys. */
export function TreeItem({ name, ticked, current, open, owns, title, onFocus, onTick, children }: Props) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys are taken by the tree
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
