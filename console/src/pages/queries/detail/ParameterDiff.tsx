import { Status, type Tone } from "@/components/Badge.tsx";
import { VisibleText } from "@/components/VisibleText.tsx";
import css from "./Facts.module.css";
import { compareParameters, type ParameterChange } from "./parameterChanges.ts";

const TONES: Record<ParameterChange["change"], Tone> = {
  unchanged: "neutral",
  added: "good",
  removed: "bad",
  changed: "warn",
};

/** The parameters of two versions of a query, one row for each name. */
export function ParameterDiff({ before, after }: { before: unknown; after: unknown }) {
  const rows = compareParameters(before, after);
  if (rows.length === 0) {
    return <p>Neither version has parameters.</p>;
  }
  return (
    <table class={css.table} aria-label="Parameters">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Change</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, change, before: left, after: right }) => (
          <tr key={name}>
            <th scope="row">
              <code>
                <VisibleText text={name} />
              </code>
            </th>
            <td>
              <Status tone={TONES[change]}>{change}</Status>
            </td>
            <td>
              <VisibleText text={left} />
            </td>
            <td>
              <VisibleText text={right} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
