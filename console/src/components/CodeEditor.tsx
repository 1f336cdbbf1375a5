import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { Button } from "./Button.tsx";
import css from "./CodeEditor.module.css";
import { CodeHighlight, type Token } from "./CodeHighlight.tsx";
import { CompletionList } from "./CompletionList.tsx";
import { joinClasses } from "./classes.ts";
import type { Complete } from "./completions.ts";
import {
  computeOffset,
  computePlace,
  findVisibleLines,
  measureColumn,
  measureWord,
  type Place,
  type TextError,
} from "./textPlaces.ts";
import { type CompletionState, useCompletions } from "./useCompletions.ts";
import { InvisibleWarning } from "./VisibleText.tsx";

interface Props {
  /** Name of the language or the text: "KQL". */
  label: string;
  value: string;
  onInput: (value: string) => void;
  /** Called on Ctrl+Enter, or Cmd+Enter. */
  onRun?: () => void;
  /** Help while there is no error. */
  hint?: string;
  errors?: readonly TextError[];
  rows?: number;
  disabled?: boolean;
  /** Splits the text into coloured parts. Must be stable between renders. */
  tokenize?: (text: string) => Token[];
  /** Offers words while somebody types, and on Ctrl+Space. */
  complete?: Complete;
  /** Buttons beside the label. */
  actions?: ComponentChildren;
}

interface Scroll {
  top: number;
  left: number;
  height: number;
}

const LINE = 20;
const PAD = 8;
const INDENT = 12;
const TABS = 4;
/** Width of the line numbers' margins. */
const GUTTER = 24;
/** More marks and messages would hide the text, and slow the page down. */
const MOST_ERRORS = 50;

/** A text area for code with line numbers, marks at the errors, and optional colours and completions. */
export function CodeEditor(props: Props) {
  const { label, value, onInput, onRun, hint, errors = [], rows = 8, disabled = false, tokenize, actions } = props;
  const id = useId();
  const input = useRef<HTMLTextAreaElement>(null);
  const [scroll, setScroll] = useState<Scroll>({ top: 0, left: 0, height: rows * LINE + 2 * PAD });
  const completions = useCompletions(props.complete);
  const lines = value.split("\n");
  const { start, end } = findVisibleLines(scroll.top, scroll.height, LINE, lines.length);
  const keys = (event: KeyboardEvent) => {
    const runs = event.key === "Enter" && (event.ctrlKey || event.metaKey) && onRun !== undefined;
    if (runs || completions.onKey(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
    if (runs) {
      completions.close();
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
      <div class={css.head}>
        <label class={css.label} for={id}>
          {label}
        </label>
        {actions && <div class={css.actions}>{actions}</div>}
      </div>
      <div class={css.frame}>
        <div class={joinClasses(css.box, errors.length > 0 && css.invalid)}>
          <Gutter lines={lines.length} scroll={scroll} errors={errors} />
          <div class={css.pane}>
            <Marks errors={errors} lines={lines} scroll={scroll} />
            {tokenize && (
              <CodeHighlight {...{ value, tokenize, start, end }} top={start * LINE - scroll.top} left={scroll.left} />
            )}
            <textarea
              ref={input}
              id={id}
              class={joinClasses(css.input, tokenize && css.transparent)}
              style={{ height: `${rows * LINE + 2 * PAD}px` }}
              value={value}
              disabled={disabled}
              spellcheck={false}
              autocomplete="off"
              aria-invalid={errors.length > 0 ? true : undefined}
              aria-describedby={`${id}-below`}
              {...describeCompletions(completions)}
              onInput={({ currentTarget: area }) => {
                onInput(area.value);
                completions.onInput(area);
              }}
              onScroll={({ currentTarget: at }) =>
                setScroll({ top: at.scrollTop, left: at.scrollLeft, height: at.clientHeight })
              }
              onKeyDown={keys}
              onBlur={completions.close}
              onClick={completions.close}
            />
          </div>
        </div>
        <OpenCompletions completions={completions} input={input} lines={lines} scroll={scroll} />
      </div>
      <InvisibleWarning texts={[value]} />
      <div class={css.below} id={`${id}-below`}>
        <Messages errors={errors} onGo={goTo} />
        {errors.length === 0 && hint && <p class={css.hint}>{hint}</p>}
      </div>
    </div>
  );
}

function describeCompletions({ id, open, active }: CompletionState) {
  return open
    ? ({
        "aria-autocomplete": "list",
        "aria-controls": id,
        "aria-activedescendant": `${id}-${active}`,
      } as const)
    : {};
}

interface OpenProps {
  completions: CompletionState;
  input: { current: HTMLTextAreaElement | null };
  lines: readonly string[];
  scroll: Scroll;
}

/** The open completions below the word that they replace. */
function OpenCompletions({ completions, input, lines, scroll }: OpenProps) {
  const { id, open, active, accept } = completions;
  if (!open) {
    return null;
  }
  const { line, column } = computePlace(lines, open.from);
  const width = measureColumn(lines[line - 1] ?? "", column, TABS);
  return (
    <CompletionList
      {...{ id, active }}
      items={open.items}
      top={PAD + line * LINE - scroll.top}
      left={`min(calc(${String(lines.length).length}ch + ${GUTTER + INDENT - scroll.left}px + ${width}ch), 60%)`}
      onAccept={(item) => input.current && accept(input.current, item)}
    />
  );
}

/** The line numbers; only visible ones are drawn, because a document can have thousands of lines. */
function Gutter({ lines, scroll, errors }: { lines: number; scroll: Scroll; errors: readonly TextError[] }) {
  const bad = new Set(errors.map((error) => error.place?.line));
  const { start, end } = findVisibleLines(scroll.top, scroll.height, LINE, lines);
  return (
    <div class={css.gutter} style={{ width: `calc(${String(lines).length}ch + ${GUTTER}px)` }} aria-hidden="true">
      <div class={css.numbers} style={{ transform: `translateY(${start * LINE - scroll.top}px)` }}>
        {Array.from({ length: end - start }, (_, index) => start + index + 1).map((line) => (
          <div key={line} class={joinClasses(bad.has(line) && css.bad)}>
            {line}
          </div>
        ))}
      </div>
    </div>
  );
}

function Messages({ errors, onGo }: { errors: readonly TextError[]; onGo: (place: Place) => void }) {
  if (errors.length === 0) {
    return null;
  }
  return (
    <div class={css.errors} role="alert">
      {errors.slice(0, MOST_ERRORS).map(({ message, place }) => (
        <p key={`${place?.line}:${place?.column}:${message}`} class={css.error}>
          {place && `Line ${place.line}, column ${place.column}: `}
          {message}
          {place && (
            <Button kind="quiet" onClick={() => onGo(place)}>
              Go there
            </Button>
          )}
        </p>
      ))}
      {errors.length > MOST_ERRORS && <p class={css.error}>and {errors.length - MOST_ERRORS} more</p>}
    </div>
  );
}

interface MarksProps {
  errors: readonly TextError[];
  lines: readonly string[];
  scroll: Scroll;
}

/** Marks the lines and the words of the errors. */
function Marks({ errors, lines, scroll }: MarksProps) {
  return (
    <>
      {errors.slice(0, MOST_ERRORS).map(({ place, message }) => {
        if (!place) {
          return null;
        }
        const line = lines[place.line - 1] ?? "";
        const top = `${PAD + (place.line - 1) * LINE - scroll.top}px`;
        const left = `calc(${INDENT - scroll.left - 2}px + ${measureColumn(line, place.column, TABS)}ch)`;
        return (
          <div
            key={`${place.line}:${place.column}:${message}`}
            class={css.marks}
            aria-hidden="true"
            data-line={place.line}
            data-column={place.column}
          >
            <div class={css.line} style={{ top }} />
            <div class={css.place} style={{ top, left, width: `${measureWord(line, place.column)}ch` }} />
          </div>
        );
      })}
    </>
  );
}
