import type { ComponentChildren } from "preact";
import { Button } from "./Button.tsx";
import { Notice } from "./Notice.tsx";
import { Time } from "./Time.tsx";

/** A conflict of a form with another person's change. */
export type Conflict =
  /** The change was rejected, and the newer version is not loaded yet. */
  | { state: "detected" }
  /** The service returned the old version again. */
  | { state: "delayed" }
  /** The form has the newer version and the user's changes; `both` are labels of fields that both changed. */
  | { state: "merged"; by: string | null; at: string | null; both: readonly string[] }
  /** The item no longer exists. */
  | { state: "removed"; canCreate: boolean };

interface Props {
  conflict: Conflict;
  /** The kind of item: "connection". */
  noun: string;
  busy: boolean;
  onReload: () => void;
  /** Replaces the user's changes by the stored version. */
  onDiscard: () => void;
  /** The changes that saving would make to the newer version. */
  children?: ComponentChildren;
}

/** Explains a conflict and offers the next step; typed text stays in the form. */
export function ConflictBanner({ conflict, noun, busy, onReload, onDiscard, children }: Props) {
  if (conflict.state === "removed") {
    return (
      <Notice kind="warn" title={`Another person removed this ${noun}. Your changes are not saved.`}>
        <p>{conflict.canCreate ? "Save creates it again, as typed here." : "It cannot be created again."}</p>
      </Notice>
    );
  }
  if (conflict.state === "merged") {
    return (
      <Notice kind="info" title={`You see the current version of this ${noun}, with your changes.`}>
        <p>
          {conflict.by ?? "Another person"} changed it last{conflict.at && ", "}
          {conflict.at && <Time at={conflict.at} />}. Your changes are not saved yet.
        </p>
        {conflict.both.length > 0 && <p>Both of you changed: {conflict.both.join(", ")}. The form has your values.</p>}
        {children}
        <div>
          <Button onClick={onDiscard}>Discard my changes</Button>
        </div>
      </Notice>
    );
  }
  return (
    <Notice kind="warn" title={`Another person changed this ${noun} after you opened it. Your changes are not saved.`}>
      <p>
        {conflict.state === "delayed"
          ? "The newer version is not available yet. Try again in a few seconds."
          : "Reload shows the current version and keeps what you typed."}
      </p>
      <div>
        <Button icon="refresh" busy={busy} onClick={onReload}>
          Reload
        </Button>
      </div>
    </Notice>
  );
}
