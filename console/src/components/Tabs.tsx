import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import css from "./Tabs.module.css";

interface Props<T extends string> {
  /** Description for screen readers. */
  label: string;
  tabs: readonly { id: T; title: string }[];
  selected: T;
  onSelect: (id: T) => void;
  /** The selected tab's panel. */
  children: ComponentChildren;
}

/** Tabs over one panel; arrow keys, Home and End move between them. */
export function Tabs<T extends string>({ label, tabs, selected, onSelect, children }: Props<T>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.id === selected);
    const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 };
    const to = steps[event.key];
    const tab = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
    if (tab) {
      event.preventDefault();
      onSelect(tab.id);
      list.current?.querySelector<HTMLElement>(`#${CSS.escape(`${id}-${tab.id}`)}`)?.focus();
    }
  };
  return (
    <div class={css.tabs}>
      <div ref={list} class={css.list} role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            id={`${id}-${tab.id}`}
            type="button"
            role="tab"
            class={css.tab}
            aria-selected={tab.id === selected}
            aria-controls={`${id}-panel`}
            tabIndex={tab.id === selected ? 0 : -1}
            onClick={() => onSelect(tab.id)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} class={css.panel} role="tabpanel" aria-labelledby={`${id}-${selected}`}>
        {children}
      </div>
    </div>
  );
}
