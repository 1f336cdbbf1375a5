import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { type CreatedKey, createKey, type KeyRequest } from "@/api/keys.ts";
import { ApiError } from "@/api/problem.ts";
import { Button } from "@/components/Button.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import type { Right } from "@/session/rights.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Keys.module.css";
import { ScopeTree } from "./ScopeTree.tsx";
import { RIGHTS } from "./scopes.ts";

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
  { value: "", label: "when it is revoked" },
] as const;

/** A form that creates an API key: for the caller or, with the right to manage keys, for another member. */
export function CreateKey({ members, onCancel, onMade }: Props) {
  const who = useIdentity();
  const forOthers = useHasRights("Workspace.Keys.Manage");
  const held = who.accessRights;
  const [name, setName] = useState("");
  const [principal, setPrincipal] = useState("");
  const [ends, setEnds] = useState<(typeof ENDS)[number]["value"]>("90");
  const [chosen, setChosen] = useState<ReadonlySet<Right>>(new Set(held));
  // One idempotency key for each form: a retry after a lost reply creates no second key.
  const [once, setOnce] = useState(() => crypto.randomUUID());
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  const error = refused instanceof ApiError ? refused : undefined;
  const submit = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    setRefused(undefined);
    if (name.trim() === "" || chosen.size === 0) {
      return;
    }
    setBusy(true);
    const owner = principal.trim() === who.principal ? "" : principal.trim();
    try {
      onMade(await createKey(api, buildKeyRequest(name.trim(), owner, chosen, held, ends), once));
    } catch (thrown) {
      setRefused(thrown);
      setBusy(false);
      if (thrown instanceof ApiError && thrown.status >= 400 && thrown.status < 500) {
        setOnce(crypto.randomUUID());
      }
    }
  };
  return (
    <form class={css.form} onSubmit={(event) => void submit(event)} noValidate>
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
            hint="The program that uses it: dashboard in hall 3"
          />
          <Select
            label="It ends"
            value={ends}
            options={ENDS}
            onChange={setEnds}
            error={error?.fieldMessage("expiresInDays")}
          />
          {forOthers && (
            <Field
              label="Belongs to"
              value={principal}
              onInput={setPrincipal}
              placeholder={who.principal ?? "yourself"}
              error={error?.fieldMessage("principal")}
              hint={`A member's id; empty for yourself${members.length > 1 ? `. With keys: ${members.join(", ")}` : ""}`}
            />
          )}
        </div>
        <ScopeTree
          label="Rights"
          held={held}
          chosen={chosen}
          onChange={setChosen}
          error={tried && chosen.size === 0 ? "Choose at least one right." : error?.fieldMessage("rights")}
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

function buildKeyRequest(
  name: string,
  owner: string,
  chosen: ReadonlySet<Right>,
  held: readonly Right[],
  ends: string,
): KeyRequest {
  // A key with all rights follows its owner's; only callers with every right can create one for another person.
  const all = chosen.size === held.length && (owner === "" || held.length === RIGHTS.length);
  return {
    name,
    ...(owner === "" ? {} : { principal: owner }),
    ...(all ? {} : { rights: [...chosen].sort() }),
    ...(ends === "" ? {} : { expiresInDays: Number(ends) }),
  };
}
