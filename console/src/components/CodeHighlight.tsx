import { useMemo } from "preact/hooks";
import css from "./CodeHighlight.module.css";

/** A part of a text; `kind` decides its colour. */
export interface Token {
  text: string;
  kind: "keyword" | "function" | "type" | "name" | "text" | "number" | "comment" | undefined;
}

interface Props {
  value: string;
  tokenize: (text: string) => Token[];
  /** The range of lines to draw, and the pixels of the first one from the top. */
  start: number;
  end: number;
  top: number;
  left: number;
}

/** The coloured text below a text area whose own text is transparent. Only visible lines are drawn. */
export function CodeHighlight({ value, tokenize, start, end, top, left }: Props) {
  const lines = useMemo(() => splitLines(tokenize(value)), [value, tokenize]);
  return (
    <pre class={css.highlight} style={{ transform: `translate(${-left}px, ${top}px)` }} aria-hidden="true">
      {lines.slice(start, end).map((line, index) => (
        <div key={start + index}>
          {line.map(({ text, kind }, place) => (
            <span key={place} class={kind && css[kind]}>
              {text}
            </span>
          ))}
        </div>
      ))}
    </pre>
  );
}

/** Splits tokens at the ends of lines. */
export function splitLines(tokens: readonly Token[]): Token[][] {
  const lines: Token[][] = [[]];
  for (const { text, kind } of tokens) {
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) {
        lines.push([]);
      }
      if (part !== "") {
        lines.at(-1)?.push({ text: part, kind });
      }
    }
  }
  return lines;
}
