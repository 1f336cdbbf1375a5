import type { Right } from "@/session/rights.ts";
import css from "./RightsList.module.css";

/** A list of rights by name. */
export function RightsList({ rights }: { rights: readonly Right[] }) {
  return (
    <span class={css.rights}>
      {rights.length === 0 && "no rights"}
      {rights.map((right) => (
        <code key={right}>{right}</code>
      ))}
    </span>
  );
}
