import { useLayoutEffect, useState } from "preact/hooks";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { ApiError, api } from "@/api/index.ts";
import { type NewEvent, writeEvent } from "@/api/provenance.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Field, TextArea } from "@/components/Field.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useInvalidFocus } from "@/components/useInvalidFocus.ts";
import type { ChainName } from "@/proof/chains.ts";
import { readObject } from "@/proof/jsonText.ts";
import { parseRecordId } from "@/proof/record.ts";
import { useIdentity } from "@/session/hooks.ts";
import css from "./Audit.module.css";

interface Props {
  chain: ChainName;
  label: string;
  onClose: () => void;
  /** Called with the new record, unless the dialog was closed before the reply. */
  onWritten: (sequence: number) => void;
}

type Text = Record<
  "ActionType" | "EntityType" | "EntityID" | "Name" | "Description" | "NodeID" | "BeforeState" | "AfterState",
  string
>;

const NOTHING: Text = {
  ...{ ActionType: "", EntityType: "", EntityID: "", Name: "" },
  ...{ Description: "", NodeID: "", BeforeState: "", AfterState: "" },
};
const REQUIRED = ["ActionType", "EntityType", "EntityID"] as const;
const OPTIONAL = ["Name", "Description", "NodeID"] as const;
const STATES = ["BeforeState", "AfterState"] as const;

/** A dialog that writes an event. */
export function WriteDialog({ chain, label, onClose, onWritten }: Props) {
  const who = useIdentity();
  const [text, setText] = useState(NOTHING);
  const [wrong, setWrong] = useState<Partial<Text>>({});
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [written, setWritten] = useState<number>();
  // An effect, because a late reply must not lead a user away from another page.
  useLayoutEffect(() => {
    if (written !== undefined) {
      onWritten(written);
    }
  }, [written]);
  // One key for each event: a retry after a lost reply stores it once.
  const [key, setKey] = useState(createIdempotencyKey);
  const { element, focusInvalid } = useInvalidFocus<HTMLDivElement>();
  const set = (name: keyof Text) => (value: string) => {
    setText({ ...text, [name]: value });
    setKey(createIdempotencyKey());
  };
  const send = async () => {
    const read = readEvent(text);
    setWrong(read.wrong);
    if (!read.event) {
      focusInvalid();
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      const { RecordID } = await writeEvent(api, chain, read.event, key);
      showToast(`Written as ${RecordID}`);
      setWritten(parseRecordId(RecordID) ?? 0);
    } catch (failed) {
      setError(failed);
      setBusy(false);
      focusInvalid();
    }
  };
  const field = (name: keyof Text) => ({
    value: text[name],
    onInput: set(name),
    error: wrong[name] ?? (error instanceof ApiError ? error.fieldMessage(name) : undefined),
  });
  return (
    <Dialog
      title={`Write to ${label}`}
      wide
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} disabled={who.principal === null} onClick={() => void send()}>
            Write event
          </Button>
        </>
      }
    >
      {who.principal === null && (
        <Notice kind="warn" title="This token has no user identity">
          Service tokens cannot write events, because each event records a user. Sign in as yourself.
        </Notice>
      )}
      <div ref={element} class={css.fields}>
        <div class={css.formGrid}>
          <Field label="Action" {...field("ActionType")} hint="A name of your choice, such as SetpointChanged" />
          <Field label="Entity type" {...field("EntityType")} hint="Such as Pump" />
          <Field label="Entity" {...field("EntityID")} hint="Such as rig-1" />
          <Field label="Name (optional)" {...field("Name")} />
          <Field label="Node (optional)" {...field("NodeID")} />
          <Field label="Description (optional)" {...field("Description")} />
        </div>
        <div class={css.formPair}>
          <TextArea label="State before (optional)" {...field("BeforeState")} rows={6} mono hint="A JSON object" />
          <TextArea label="State after (optional)" {...field("AfterState")} rows={6} mono hint="A JSON object" />
        </div>
      </div>
      <p class={css.soft}>
        The service adds your name and the time. Events cannot be changed or deleted, only amended.
      </p>
      {error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  );
}

/** Returns the entered event, or its errors. */
function readEvent(text: Text): { event: NewEvent | undefined; wrong: Partial<Text> } {
  const wrong: Partial<Text> = {};
  for (const name of REQUIRED) {
    if (text[name].trim() === "") wrong[name] = "This field is required.";
  }
  const states: Partial<Record<(typeof STATES)[number], Record<string, unknown>>> = {};
  for (const name of STATES) {
    if (text[name].trim() === "") continue;
    const read = readObject(text[name]);
    if (read.problem === undefined) states[name] = read.value;
    else wrong[name] = read.problem;
  }
  const given = OPTIONAL.filter((name) => text[name] !== "").map((name) => [name, text[name]]);
  const { ActionType, EntityType, EntityID } = text;
  const event = { ActionType, EntityType, EntityID, ...Object.fromEntries(given), ...states };
  return { event: Object.keys(wrong).length > 0 ? undefined : event, wrong };
}
