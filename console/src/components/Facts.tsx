import type { ComponentChildren } from "preact";
import css from "./Facts.module.css";

interface Props {
  facts: readonly { label: string; value: ComponentChildren }[];
}

/** Labels with values that cannot be changed here. */
export function Facts({ facts }: Props) {
  return (
    <dl class={css.facts}>
      {facts.map(({ label, value }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
