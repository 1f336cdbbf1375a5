import { useState } from "preact/hooks";
import { formatCount } from "@/format.ts";
import { Button } from "./Button.tsx";
import { findInvisible, splitPieces } from "./invisible.ts";
import { Notice } from "./Notice.tsx";
import { shorten } from "./shorten.ts";
import css from "./VisibleText.module.css";

interface Props {
  text: string;
  /** Whether the text is the name of one thing, in which spaces matter. */
  isName?: boolean;
}

/** A stored text with marked escapes for invisible characters; it cannot change the direction of other text. */
export function VisibleText({ text, isName = false }: Props) {
  return (
    <span class={css.seen}>
      {splitPieces(text, isName).map((piece, index) =>
        piece.isInvisible ? (
          <span key={index} class={css.escape} title="Invisible character">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </span>
  );
}

/** The beginning of a stored text, with a button to show all of it. */
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

/** A warning about invisible characters in texts; renders nothing if there are none. */
export function InvisibleWarning({ texts }: { texts: readonly string[] }) {
  const found = findInvisible(...texts);
  if (found.length === 0) {
    return null;
  }
  return (
    <Notice kind="warn" title="The text contains invisible characters">
      <p>
        {found.slice(0, 12).join(", ")}
        {found.length > 12 && " and others"}: the text may look different from its real content.
      </p>
    </Notice>
  );
}
