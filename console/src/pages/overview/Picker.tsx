import { useState } from "preact/hooks";
import { Checkbox, Field } from "@/components/Field.tsx";
import { formatReading } from "@/format.ts";
import type { Series } from "@/live/history.ts";
import { buildSeriesName, MOST_DRAWN } from "./choice.ts";
import css from "./Live.module.css";

const MOST_LISTED = 120;

interface Props {
  series: readonly Series[];
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
}

/** A list of the received numeric fields with their newest values; selected ones are drawn. */
export function Picker({ series, chosen, onChange }: Props) {
  const [text, setText] = useState("");
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = series
    .filter((each) => words.every((word) => `${buildSeriesName(each)} ${each.field}`.toLowerCase().includes(word)))
    .sort((left, right) => ORDER.compare(buildName(left), buildName(right)));
  const full = chosen.length >= MOST_DRAWN;
  return (
    <section class={css.picker} aria-label="Fields">
      <Field label="Find a field" hideLabel type="search" placeholder="Find a field" value={text} onInput={setText} />
      <p class={css.note}>
        {chosen.length} of {series.length} drawn{full ? " (the maximum)" : ""}
      </p>
      <div class={css.list}>
        {found.slice(0, MOST_LISTED).map((each, index) => (
          <div key={each.id}>
            {buildSeriesName(each) !== (found[index - 1] && buildSeriesName(found[index - 1] as Series)) && (
              <p class={css.device}>{buildSeriesName(each)}</p>
            )}
            <div class={css.entry}>
              <Checkbox
                label={
                  <>
                    <span class="visually-hidden">{buildSeriesName(each)} </span>
                    {each.field}
                  </>
                }
                checked={chosen.includes(each.id)}
                disabled={full && !chosen.includes(each.id)}
                onChange={(on) => onChange(on ? [...chosen, each.id] : chosen.filter((id) => id !== each.id))}
              />
              <span>{formatReading(each.value)}</span>
            </div>
          </div>
        ))}
        {found.length > MOST_LISTED && <p class={css.note}>and {found.length - MOST_LISTED} more: type to search</p>}
        {found.length === 0 && <p class={css.note}>No numeric field matches.</p>}
      </div>
    </section>
  );
}

function buildName(series: Series): string {
  return `${series.connection} ${series.device} ${series.field}`;
}

const ORDER = new Intl.Collator("en", { numeric: true });
