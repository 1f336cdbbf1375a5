import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { type CreatedKey, fetchKeys } from "@/api/keys.ts";
import { fetchMembers } from "@/api/team.ts";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { RightsList } from "@/components/rights/RightsList.tsx";
import { Time } from "@/components/Time.tsx";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";
import { session } from "@/session/index.ts";
import { Panel } from "@/shell/Page.tsx";
import { CreateKey } from "./CreateKey.tsx";
import { KeyDialog } from "./KeyDialog.tsx";
import { classifyKey, KeyStatus, type ListedKey } from "./KeyStatus.tsx";
import css from "./Keys.module.css";
import { listBinding } from "./listBinding.tsx";
import { Secret } from "./Secret.tsx";
import { TelemetrySnippets } from "./TelemetrySnippets.tsx";

const COLUMNS: readonly Column<ListedKey>[] = [
  { key: "name", title: "Name", value: (key) => key.name },
  { key: "id", title: "Key", type: "code", value: (key) => key.keyId, width: 104 },
  { key: "principal", title: "Belongs to", value: (key) => key.principal },
  {
    key: "state",
    title: "State",
    value: (key) => classifyKey(key, session.now()),
    render: (key) => <KeyStatus of={key} />,
    width: 152,
  },
  {
    key: "connections",
    title: "Bound to",
    value: (key) => key.connections?.join(", ") ?? null,
    width: 128,
  },
  { key: "rights", title: "Rights", type: "number", value: (key) => key.accessRights.length, width: 76 },
  { key: "used", title: "Last used", type: "time", value: (key) => key.lastUsedAt, width: 168 },
  { key: "expires", title: "Expires", type: "time", value: (key) => key.expiresAt, width: 168 },
];

/** The caller's API keys, or all keys for callers who manage keys; each opens for details and revocation. */
export function ApiKeys() {
  // Newest first, because readers usually look for a recent key.
  const readsTeam = useHasRights("Workspace.Team.Read");
  const keys = useResource(async (signal) => (await fetchListedKeys(readsTeam, signal)).reverse(), [readsTeam]);
  const everybody = useHasRights("Workspace.Keys.Manage");
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<CreatedKey>();
  const [open, setOpen] = useState<ListedKey>();
  if (made) {
    return (
      <Secret
        title={`Your new API key ${made.name}`}
        secret={made.apiKey}
        facts={[
          { label: "Belongs to", value: made.principal },
          {
            label: "Expires",
            value: made.expiresAt ? <Time at={made.expiresAt} /> : "never; it works until it is revoked",
          },
          { label: "Rights", value: <RightsList rights={made.accessRights} /> },
          ...listBinding(made),
        ]}
        onDone={() => {
          setMade(undefined);
          keys.reload();
        }}
      >
        {made.connections && (
          <TelemetrySnippets keyId={made.keyId} connections={made.connections} devices={made.devices} />
        )}
      </Secret>
    );
  }
  if (making) {
    const members = [...new Set((keys.data ?? []).map((key) => key.principal))].sort();
    return (
      <CreateKey
        members={members}
        onCancel={() => {
          setMaking(false);
          // The service possibly made the key although its reply was lost.
          keys.reload();
        }}
        onMade={(key) => {
          setMaking(false);
          setMade(key);
        }}
      />
    );
  }
  return (
    <Panel
      title={everybody ? "All API keys" : "Your API keys"}
      actions={
        <>
          <Button kind="quiet" icon="refresh" label="Refresh" onClick={keys.reload} />
          <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
            Create an API key
          </Button>
        </>
      }
    >
      <p class={css.soft}>Open a key to see its rights or to revoke it.</p>
      <Loaded resource={keys} rows={6}>
        {(rows) => (
          <DataTable
            label="API keys"
            columns={COLUMNS}
            rows={rows}
            rowKey={(key) => key.keyId}
            onOpen={setOpen}
            empty={<Empty title="No API keys">Create one for a program that calls the workspace.</Empty>}
          />
        )}
      </Loaded>
      {open && (
        <KeyDialog
          of={open}
          onClose={() => setOpen(undefined)}
          onRevoked={() => {
            setOpen(undefined);
            keys.reload();
          }}
        />
      )}
    </Panel>
  );
}

/** Returns the keys; if the token can read the team, also whether their owners are disabled. */
async function fetchListedKeys(readsTeam: boolean, signal: AbortSignal): Promise<ListedKey[]> {
  const [keys, members] = await Promise.all([fetchKeys(api, signal), readsTeam ? fetchMembers(api, signal) : []]);
  const disabled = new Set(members.filter(({ enabled }) => !enabled).map(({ id }) => id));
  return keys.map((key) => ({ ...key, ownerDisabled: disabled.has(key.principal) }));
}
