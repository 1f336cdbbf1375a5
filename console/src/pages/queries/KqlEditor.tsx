import { useId, useRef, useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { joinClasses } from "@/components/classes.ts";
import { InvisibleWarning } from "@/components/VisibleText.tsx";
import css from "./KqlEditor.module.css";
import { computeOffset, type KqlError, measureColumn, measureWord, type Place } from "./kqlErrors.ts";

interface Props {
  value: string;
  onInput: (value: string) => void;
  /** Called on Ctrl+Enter, or Cmd+Enter. */
  onRun?: () => void;
  error?: KqlError | undefined;
  rows?: number;
}

const LINE = 20;
const PAD = 8;
const INDENT = 12;
const TABS = 4;

/** A text area for KQL with line numbers and a mark at the engine's error. */
export function KqlEditor({ value, onInput, onRun, error, rows = 8 }: Props) {
  const id = useId();
  const input = useRef<HTMLTextAreaElement>(null);
  const [scroll, setScroll] = useState({ top: 0, left: 0 });
  const lines = value.split("\n");
  const place = error?.place;
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && onRun) {
      event.preventDefault();
      onRun();
    }
  };
  const goTo = (to: Place) => {
    const at = computeOffset(value, to);
    input.current?.focus();
    input.current?.setSelectionRange(at, at);
    input.current?.scrollTo({ top: (to.line - 3) * LINE });
  };
  return (
    <div class={css.field}>
      <label class={css.label} for={id}>
        KQL
      </label>
      <div class={joinClasses(css.box, error && css.invalid)}>
        <div class={css.gutter} aria-hidden="true">
          <div class={css.numbers} style={{ transform: `translateY(${-scroll.top}px)` }}>
            {lines.map((_, index) => (
              <div key={index} class={joinClasses(place?.line === index + 1 && css.bad)}>
                {index + 1}
              </div>
            ))}
          </div>
        </div>
        <div class={css.pane}>
          {place && <Mark line={lines[place.line - 1] ?? ""} place={place} scroll={scroll} />}
          <textarea
            ref={input}
            id={id}
            class={css.input}
            style={{ height: `${rows * LINE + 2 * PAD}px` }}
            value={value}
            spellcheck={false}
            autocomplete="off"
            aria-invalid={error ? true : undefined}
            aria-describedby={`${id}-below`}
            onInput={(event) => onInput(event.currentTarget.value)}
            onScroll={(event) =>
              setScroll({ top: event.currentTarget.scrollTop, left: event.currentTarget.scrollLeft })
            }
            onKeyDown={keys}
          />
        </div>
      </div>
      <InvisibleWarning texts={[value]} />
      <div class={css.below} id={`${id}-below`}>
        {error && (
          <p class={css.error} role="alert">
            {place && `Line ${place.line}, column ${place.column}: `}
            {error.message}
          </p>
        )}
        {place && (
          <Button kind="quiet" onClick={() => goTo(place)}>
            Go there
          </Button>
        )}
        {!error && onRun && <p class={css.hint}>Ctrl+Enter runs it.</p>}
      </div>
    </div>
  );
}

interface MarkProps {
  line: string;
  place: Place;
  scroll: { top: number; left: number };
}

/** Marks the line and the word of the engine's error. */
function Mark({ line, place, scroll }: MarkProps) {
  const top = `${PAD + (place.line - 1) * LINE - scroll.top}px`;
  const left = `calc(${INDENT - scroll.left - 2}px + ${measureColumn(line, place.column, TABS)}ch)`;
  return (
    <div class={css.marks} aria-hidden="true" data-line={place.line} data-column={place.column}>
      <div class={css.line} style={{ top }} />
      <div class={css.place} style={{ top, left, width: `${measureWord(line, place.column)}ch` }} />
    </div>
  );
}
