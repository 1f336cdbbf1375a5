import { useState } from "preact/hooks";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { ApiError, api } from "@/api/index.ts";
import { type NewEvent, writeEvent } from "@/api/provenance.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Field, TextArea } from "@/components/Field.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import type { ChainName } from "@/proof/chains.ts";
import { readObject } from "@/proof/jsonText.ts";
import { parseRecordId } from "@/proof/record.ts";
import { useIdentity } from "@/session/hooks.ts";
import css from "./Audit.module.css";

interface Props {
  chain: ChainName;
  label: string;
  onClose: () => void;
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

/** Asks for an event and writes it. */
export function WriteDialog({ chain, label, onClose, onWritten }: Props) {
  const who = useIdentity();
  const [text, setText] = useState(NOTHING);
  const [wrong, setWrong] = useState<Partial<Text>>({});
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  // One key for one event: what is sent again after a lost answer is stored once.
  const [key, setKey] = useState(createIdempotencyKey);
  const set = (name: keyof Text) => (value: string) => {
    setText({ ...text, [name]: value });
    setKey(createIdempotencyKey());
  };
  const send = async () => {
    const read = readEvent(text);
    setWrong(read.wrong);
    if (!read.event) return;
    setBusy(true);
    setError(undefined);
    try {
      const written = await writeEvent(api, chain, read.event, key);
      showToast(`Written as ${written.RecordID}`);
      onWritten(parseRecordId(written.RecordID) ?? 0);
    } catch (failed) {
      setError(failed);
      setBusy(false);
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
        <Notice kind="warn" title="This token names nobody">
          A service's token cannot write: each event carries who acted. Sign in as yourself.
        </Notice>
      )}
      <div class={css.formGrid}>
        <Field label="Action" {...field("ActionType")} hint="In your own words: SetpointChanged" />
        <Field label="Entity type" {...field("EntityType")} hint="Pump" />
        <Field label="Entity" {...field("EntityID")} hint="rig-1" />
        <Field label="Name (optional)" {...field("Name")} />
        <Field label="Node (optional)" {...field("NodeID")} />
        <Field label="Description (optional)" {...field("Description")} />
      </div>
      <div class={css.formPair}>
        <TextArea label="State before (optional)" {...field("BeforeState")} rows={6} mono hint="A JSON object" />
        <TextArea label="State after (optional)" {...field("AfterState")} rows={6} mono hint="A JSON object" />
      </div>
      <p class={css.soft}>
        The service adds who you are and the time. What is written stays: there is no change and no deletion, only
        amendments.
      </p>
      {error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  );
}

/** Returns the event that was entered, or what is wrong with it. */
function readEvent(text: Text): { event: NewEvent | undefined; wrong: Partial<Text> } {
  const wrong: Partial<Text> = {};
  for (const name of REQUIRED) {
    if (text[name].trim() === "") wrong[name] = "Is required.";
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
