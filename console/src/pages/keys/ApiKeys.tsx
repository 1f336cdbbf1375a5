import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { type ApiKey, type CreatedKey, fetchKeys } from "@/api/keys.ts";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Time } from "@/components/Time.tsx";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { CreateKey } from "./CreateKey.tsx";
import { RightsList } from "./CreateToken.tsx";
import { KeyDialog } from "./KeyDialog.tsx";
import { classifyKey, KeyStatus } from "./KeyStatus.tsx";
import css from "./Keys.module.css";
import { Secret } from "./Secret.tsx";

const COLUMNS: readonly Column<ApiKey>[] = [
  { key: "name", title: "Name", value: (key) => key.name },
  { key: "id", title: "Key", type: "code", value: (key) => key.keyId, width: 104 },
  { key: "principal", title: "Belongs to", value: (key) => key.principal },
  {
    key: "state",
    title: "State",
    value: (key) => classifyKey(key, new Date()),
    render: (key) => <KeyStatus of={key} />,
    width: 104,
  },
  { key: "rights", title: "Rights", type: "number", value: (key) => key.accessRights.length, width: 76 },
  { key: "used", title: "Last used", type: "time", value: (key) => key.lastUsedAt, width: 168 },
  { key: "expires", title: "Ends", type: "time", value: (key) => key.expiresAt, width: 168 },
];

/** The caller's API keys, or all keys for callers who manage keys; each opens for details and revocation. */
export function ApiKeys() {
  // Newest first, because readers usually look for a recent key.
  const keys = useResource(async (signal) => (await fetchKeys(api, signal)).reverse(), []);
  const everybody = useHasRights("Workspace.Keys.Manage");
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<CreatedKey>();
  const [open, setOpen] = useState<ApiKey>();
  if (made) {
    return (
      <Secret
        title={`Your new API key ${made.name}`}
        secret={made.apiKey}
        facts={[
          { label: "Belongs to", value: made.principal },
          { label: "Ends", value: made.expiresAt ? <Time at={made.expiresAt} /> : "when it is revoked" },
          { label: "Carries", value: <RightsList rights={made.accessRights} /> },
        ]}
        onDone={() => {
          setMade(undefined);
          keys.reload();
        }}
      />
    );
  }
  if (making) {
    const members = [...new Set((keys.data ?? []).map((key) => key.principal))].sort();
    return (
      <CreateKey
        members={members}
        onCancel={() => setMaking(false)}
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
