import { useState } from "preact/hooks";
import { formatQuantity } from "@/format.ts";
import { type Change, diff } from "./diff.ts";
import { Checkbox } from "./Field.tsx";
import css from "./JsonDiff.module.css";
import { TextDiff } from "./TextDiff.tsx";
import { LongText, VisibleText } from "./VisibleText.tsx";

interface Props {
  /** Undefined if there was no earlier state. */
  before: unknown;
  /** Undefined if there is no later state. */
  after: unknown;
  /** Shows unchanged fields, too; the reader can switch it. */
  all?: boolean;
}

/** Longer texts are compared line by line and word by word. */
const LONG = 80;

const SIGNS: Record<Change, { sign: string; word: string }> = {
  same: { sign: "", word: "unchanged" },
  added: { sign: "+", word: "added" },
  removed: { sign: "−", word: "removed" },
  changed: { sign: "±", word: "changed" },
};

/** Two states side by side, field by field. */
export function JsonDiff({ before, after, all = false }: Props) {
  const [whole, setWhole] = useState(all);
  const fields = diff(before ?? {}, after ?? {});
  const changed = fields.filter((field) => field.change !== "same");
  const shown = whole ? fields : changed;
  const hidden = fields.length - changed.length;
  return (
    <div class={css.diff}>
      {shown.length === 0 && <p class={css.none}>Nothing changed.</p>}
      {shown.length > 0 && (
        <table class={css.table}>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((field) => (
              <tr key={JSON.stringify([field.path, field.change])} class={css[field.change]}>
                <th scope="row">
                  <span class={css.sign} aria-hidden="true">
                    {SIGNS[field.change].sign}
                  </span>
                  <VisibleText
                    text={field.path.length === 0 ? "(value)" : field.path.join(".").replaceAll(".[", "[")}
                  />
                  <span class="visually-hidden">, {SIGNS[field.change].word}</span>
                </th>
                {isText(field.before) && isText(field.after) && field.change === "changed" ? (
                  <td colSpan={2} class={css.text}>
                    <TextDiff before={field.before} after={field.after} label={`Changes of ${field.path.join(".")}`} />
                  </td>
                ) : (
                  <>
                    <td class={css.before}>
                      <LongText text={formatValue(field.before)} />
                    </td>
                    <td class={css.after}>
                      <LongText text={formatValue(field.after)} />
                    </td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {hidden > 0 && (
        <Checkbox label={`Show ${formatQuantity(hidden, "unchanged field")}`} checked={whole} onChange={setWhole} />
      )}
    </div>
  );
}

/** Tells whether a value is a text that is compared line by line. */
function isText(value: unknown): value is string {
  return typeof value === "string" && (value.includes("\n") || value.length > LONG);
}

/** Formats a value as JSON, but a text of several lines unchanged. */
function formatValue(value: unknown): string {
  if (value === undefined) {
    return "";
  }
  return typeof value === "string" && value.includes("\n") ? value : JSON.stringify(value, null, 1);
}
