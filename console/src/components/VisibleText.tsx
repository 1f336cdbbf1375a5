import { useState } from "preact/hooks";
import { formatCount } from "@/format.ts";
import { Button } from "./Button.tsx";
import { findInvisible, splitPieces } from "./invisible.ts";
import { Notice } from "./Notice.tsx";
import { shorten } from "./shorten.ts";
import css from "./VisibleText.module.css";

/** A stored text: what nobody sees is written out and marked, and it turns the direction of nothing around it. */
export function VisibleText({ text }: { text: string }) {
  return (
    <span class={css.seen}>
      {splitPieces(text).map((piece, index) =>
        piece.isInvisible ? (
          <span key={index} class={css.escape} title="A character that nobody sees">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </span>
  );
}

/** A stored text that may be long: its beginning, and all of it when asked. */
export function LongText({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  const beginning = shorten(text);
  if (beginning === text) {
    return <VisibleText text={text} />;
  }
  return (
    <>
      <VisibleText text={all ? text : `${beginning}…`} />
      <span class={css.more}>
        <Button kind="quiet" onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all ${formatCount(text.length)} characters`}
        </Button>
      </span>
    </>
  );
}

/** Warns of texts that hold what nobody sees; nothing where they hold none. */
export function InvisibleWarning({ texts }: { texts: readonly string[] }) {
  const found = findInvisible(...texts);
  if (found.length === 0) {
    return null;
  }
  return (
    <Notice kind="warn" title="The text holds characters that nobody sees">
      <p>
        {found.slice(0, 12).join(", ")}
        {found.length > 12 && " and others"}: they can make it look like something else than what runs.
      </p>
    </Notice>
  );
}
