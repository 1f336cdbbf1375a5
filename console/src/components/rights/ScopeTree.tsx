import { useId, useRef } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import type { Right } from "@/session/rights.ts";
import { type Area, computeTickState, describeRight, extractVerb, groupByArea, toggleRights } from "./areas.ts";
import css from "./ScopeTree.module.css";
import { TreeItem } from "./TreeItem.tsx";
import { useTree } from "./useTree.ts";

interface Props {
  label: string;
  /** The available rights. */
  held: readonly Right[];
  chosen: ReadonlySet<Right>;
  onChange: (chosen: ReadonlySet<Right>) => void;
  error?: string | undefined;
}

/** A tree of rights by area with checkboxes; an area's checkbox selects all of its rights. */
export function ScopeTree({ label, held, chosen, onChange, error }: Props) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const areas = groupByArea(held);
  const tick = (item: string) => onChange(toggleRights(listRights(areas, item), chosen));
  const tree = useTree(areas, box, tick);
  const item = (name: string) => ({
    name,
    ticked: computeTickState(listRights(areas, name), chosen),
    current: name === tree.current,
    onFocus: () => tree.onFocus(name),
    onTick: () => tick(name),
  });
  return (
    <div class={css.frame}>
      <div class={css.head}>
        <span id={id} class={css.label}>
          {label}
        </span>
        <span class={css.soft} aria-live="polite">
          {chosen.size} of {held.length} chosen
        </span>
        <Button kind="quiet" onClick={() => onChange(new Set(held))}>
          All
        </Button>
        <Button kind="quiet" onClick={() => onChange(new Set())}>
          None
        </Button>
      </div>
      <div ref={box} class={css.tree} role="tree" aria-labelledby={id} onKeyDown={tree.onKeyDown}>
        {areas.map((area) => {
          const open = !tree.isFolded(area.id);
          const group = `${id}-${area.id}`;
          return (
            <div key={area.id} class={css.area} role="none">
              <TreeItem {...item(area.id)} open={open} owns={open ? group : undefined}>
                <strong>{area.title}</strong>
              </TreeItem>
              {open && (
                // biome-ignore lint/a11y/useSemanticElements: a group of tree items, not of fields
                <div id={group} class={css.group} role="group">
                  {area.rights.map((right) => (
                    <TreeItem key={right} {...item(right)} title={right}>
                      <span>
                        {extractVerb(right)} <span class={css.soft}>{describeRight(right)}</span>
                      </span>
                    </TreeItem>
                  ))}
                </div>
              )}
            </div>
          );
        })}
      </div>
      {error && (
        <p class={css.error} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

/** Returns the rights of an item: those of an area, or one right. */
function listRights(areas: readonly Area[], item: string): readonly Right[] {
  return areas.find((area) => area.id === item)?.rights ?? [item as Right];
}
