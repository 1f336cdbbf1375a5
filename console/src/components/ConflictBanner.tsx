import type { ComponentChildren } from "preact";
import { Button } from "./Button.tsx";
import { Notice } from "./Notice.tsx";
import { Time } from "./Time.tsx";

/** A conflict of a form with another person's change. */
export type Conflict =
  /** The change was rejected, and the newer version is not loaded yet; the user's own earlier attempt possibly made it. */
  | { state: "detected"; isPossiblyOwn: boolean }
  /** The service returned the old version again. */
  | { state: "delayed"; isPossiblyOwn: boolean }
  /** The form has the newer version and the user's changes; `both` are labels of fields that both changed. */
  | { state: "merged"; by: string | null; at: string | null; both: readonly string[] }
  /** The item no longer exists. */
  | { state: "removed"; canCreate: boolean };

interface Props {
  conflict: Conflict;
  /** The kind of item: "connection". */
  noun: string;
  busy: boolean;
  /** Whether the form differs from the version that it began with, or that it loaded after the conflict. */
  hasChanges: boolean;
  onReload: () => void;
  /** Replaces the user's changes by the stored version. */
  onDiscard: () => void;
  /** The changes that saving would make to the newer version. */
  children?: ComponentChildren;
}

/** Explains a conflict and offers the next step; typed text stays in the form. */
export function ConflictBanner(props: Props) {
  const { conflict, noun, busy, hasChanges, onReload, onDiscard, children } = props;
  if (conflict.state === "removed") {
    return (
      <Notice kind="warn" title={`Another person removed this ${noun}. Your changes are not saved.`}>
        <p>{conflict.canCreate ? "Save creates it again, as typed here." : "It cannot be created again."}</p>
      </Notice>
    );
  }
  if (conflict.state === "merged" && !hasChanges) {
    return <Notice kind="info" title={`You see the current version of this ${noun}. You have no unsaved changes.`} />;
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
  const title = conflict.isPossiblyOwn
    ? `This ${noun} changed after you opened it, possibly by your earlier attempt to save it.`
    : `Another person changed this ${noun} after you opened it. Your changes are not saved.`;
  return (
    <Notice kind="warn" title={title}>
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
