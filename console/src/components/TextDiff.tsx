import { useMemo, useState } from "preact/hooks";
import { formatQuantity } from "@/format.ts";
import { Button } from "./Button.tsx";
import { chooseVisible, type DiffLine, diffLines } from "./lineDiff.ts";
import css from "./TextDiff.module.css";
import { VisibleText } from "./VisibleText.tsx";

interface Props {
  before: string;
  after: string;
  /** Description of the text for screen readers: "KQL of the query". */
  label: string;
}

const SIGNS: Record<DiffLine["change"], { sign: string; word: string }> = {
  same: { sign: "", word: "" },
  removed: { sign: "−", word: "removed: " },
  added: { sign: "+", word: "added: " },
};

/** Two versions of a text: changed lines with the changed words marked; distant unchanged lines are folded. */
export function TextDiff({ before, after, label }: Props) {
  const [whole, setWhole] = useState(false);
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const visible = useMemo(() => chooseVisible(lines), [lines]);
  const hidden = visible.filter((shown) => !shown).length;
  if (lines.every((line) => line.change === "same")) {
    return <p class={css.none}>No line changed.</p>;
  }
  return (
    <div class={css.diff}>
      <section aria-label={label} class={css.lines}>
        {lines.map(
          (line, index) =>
            (whole || visible[index]) && (
              <Line key={`${line.before}/${line.after}`} line={line} isFirst={!whole && visible[index - 1] === false} />
            ),
        )}
      </section>
      {hidden > 0 && (
        <Button kind="quiet" onClick={() => setWhole(!whole)}>
          {whole ? "Show only changed lines" : `Show ${formatQuantity(hidden, "unchanged line")}`}
        </Button>
      )}
    </div>
  );
}

/** @param isFirst whether lines above it are folded */
function Line({ line, isFirst }: { line: DiffLine; isFirst: boolean }) {
  const { sign, word } = SIGNS[line.change];
  return (
    <div class={`${css.line} ${css[line.change]} ${isFirst ? css.folded : ""}`}>
      <span class={css.number} aria-hidden="true">
        {line.before ?? ""}
      </span>
      <span class={css.number} aria-hidden="true">
        {line.after ?? ""}
      </span>
      <span class={css.sign} aria-hidden="true">
        {sign}
      </span>
      <code class={css.text}>
        {word && <span class="visually-hidden">{word}</span>}
        {line.pieces.map(({ text, isChanged }, index) =>
          isChanged && line.change !== "same" ? (
            <mark key={index}>
              <VisibleText text={text} />
            </mark>
          ) : (
            <VisibleText key={index} text={text} />
          ),
        )}
      </code>
    </div>
  );
}
