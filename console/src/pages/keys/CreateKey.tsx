import { useState } from "preact/hooks";
import { createIdempotencyKey, needsNewKey } from "@/api/idempotency.ts";
import { api } from "@/api/index.ts";
import { type CreatedKey, createKey } from "@/api/keys.ts";
import { ApiError } from "@/api/problem.ts";
import { Button } from "@/components/Button.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { ScopeTree } from "@/components/rights/ScopeTree.tsx";
import { useInvalidFocus } from "@/components/useInvalidFocus.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import type { Right } from "@/session/rights.ts";
import { Panel } from "@/shell/Page.tsx";
import { BoundKeyFields } from "./BoundKeyFields.tsx";
import css from "./Keys.module.css";
import { type Binding, buildBoundKeyRequest, buildKeyRequest } from "./keyRequest.ts";

interface Props {
  /** Members with keys, as suggestions. */
  members: readonly string[];
  onCancel: () => void;
  onMade: (key: CreatedKey) => void;
}

const ENDS = [
  { value: "30", label: "after 30 days" },
  { value: "90", label: "after 90 days" },
  { value: "365", label: "after a year" },
  { value: "", label: "never; it works until it is revoked" },
] as const;

const PURPOSES = [
  { value: "program", label: "a program, with rights that you choose" },
  { value: "device", label: "a device or gateway, to send telemetry only" },
] as const;

/** A form that creates an API key: for the caller or, with the right to manage keys, for another member. */
export function CreateKey({ members, onCancel, onMade }: Props) {
  const who = useIdentity();
  const forOthers = useHasRights("Workspace.Keys.Manage");
  const held = who.accessRights;
  const [name, setName] = useState("");
  const [principal, setPrincipal] = useState("");
  const [ends, setEnds] = useState<(typeof ENDS)[number]["value"]>("90");
  const sends = useHasRights("Workspace.Telemetry.Write");
  const [purpose, setPurpose] = useState<(typeof PURPOSES)[number]["value"]>("program");
  const [chosen, setChosen] = useState<ReadonlySet<Right>>(new Set(held));
  const [binding, setBinding] = useState<Binding>({ connections: [], devices: "" });
  // One idempotency key for each form: a retry after a lost reply creates no second key.
  const [once, setOnce] = useState(createIdempotencyKey);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  const error = refused instanceof ApiError ? refused : undefined;
  const bound = purpose === "device";
  const nothingChosen = bound ? binding.connections.length === 0 : chosen.size === 0;
  const { element, focusInvalid } = useInvalidFocus<HTMLFormElement>();
  const chosenElse = chosen.size !== held.length || binding.connections.length > 0 || binding.devices !== "";
  useUnsavedWarning(name !== "" || principal !== "" || chosenElse);
  const submit = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    setRefused(undefined);
    if (name.trim() === "" || nothingChosen) {
      focusInvalid();
      return;
    }
    setBusy(true);
    const owner = principal.trim() === who.principal ? "" : principal.trim();
    const draft = { name: name.trim(), owner, ends };
    const wanted = bound ? buildBoundKeyRequest(draft, binding) : buildKeyRequest(draft, chosen, held);
    try {
      onMade(await createKey(api, wanted, once));
    } catch (thrown) {
      setRefused(thrown);
      setBusy(false);
      focusInvalid();
      if (needsNewKey(thrown)) {
        setOnce(createIdempotencyKey());
      }
    }
  };
  return (
    <form ref={element} class={css.form} onSubmit={(event) => void submit(event)} noValidate>
      <Panel title="Create an API key">
        <div class={css.fields}>
          <Field
            label="Name"
            value={name}
            onInput={setName}
            error={
              (tried && name.trim() === "" ? "Enter a name, such as the key's purpose." : undefined) ??
              error?.fieldMessage("name")
            }
            hint="The program that uses it, such as “dashboard in hall 3”"
          />
          <Select
            label="Expires"
            value={ends}
            options={ENDS}
            onChange={setEnds}
            error={error?.fieldMessage("expiresInDays")}
          />
          {sends && <Select label="Purpose" value={purpose} options={PURPOSES} onChange={setPurpose} />}
          {forOthers && (
            <Field
              label="Belongs to"
              value={principal}
              onInput={setPrincipal}
              placeholder={who.principal ?? "yourself"}
              error={error?.fieldMessage("principal")}
              hint={`A member's ID; empty for yourself${members.length > 1 ? `. Members with keys: ${members.join(", ")}` : ""}`}
            />
          )}
        </div>
        <Access
          bound={bound}
          chosen={chosen}
          onChoose={setChosen}
          binding={binding}
          onBind={setBinding}
          error={error}
          missing={tried && nothingChosen}
        />
        <p class={css.soft}>A key never has more rights than its owner, now or later.</p>
      </Panel>
      {refused !== undefined && <ErrorNotice error={refused} />}
      <div class={css.row}>
        <Button kind="primary" type="submit" icon="key" busy={busy}>
          Create the key
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </form>
  );
}

interface AccessProps {
  bound: boolean;
  chosen: ReadonlySet<Right>;
  onChoose: (chosen: ReadonlySet<Right>) => void;
  binding: Binding;
  onBind: (binding: Binding) => void;
  error: ApiError | undefined;
  /** Whether to report that nothing is chosen. */
  missing: boolean;
}

/** The rights of a key, or the connections and devices of a bound key. */
function Access({ bound, chosen, onChoose, binding, onBind, error, missing }: AccessProps) {
  const held = useIdentity().accessRights;
  return bound ? (
    <BoundKeyFields
      value={binding}
      onChange={onBind}
      connectionError={missing ? "Choose at least one connection." : findListMessage(error, "connections")}
      deviceError={findListMessage(error, "devices")}
    />
  ) : (
    <ScopeTree
      label="Rights"
      held={held}
      chosen={chosen}
      onChange={onChoose}
      error={missing ? "Choose at least one right." : error?.fieldMessage("rights")}
    />
  );
}

/** Returns the service's message about a list or one of its items, such as `connections[0]`. */
function findListMessage(error: ApiError | undefined, list: string): string | undefined {
  return error?.errors.find(({ field }) => field === list || field.startsWith(`${list}[`))?.message;
}
