import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { endGrant, fetchGrants, type Grant } from "@/api/oauth.ts";
import { Button } from "@/components/Button.tsx";
import { ConfirmDialog } from "@/components/ConfirmDialog.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Facts } from "@/components/Facts.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { RightsList } from "@/components/rights/RightsList.tsx";
import { useResource } from "@/components/useResource.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Keys.module.css";

const COLUMNS: readonly Column<Grant>[] = [
  { key: "client", title: "Application", value: (grant) => grant.clientName },
  { key: "id", title: "Client ID", type: "code", value: (grant) => grant.clientId },
  { key: "principal", title: "Acts as", value: (grant) => grant.principal },
  { key: "rights", title: "Rights", type: "number", value: (grant) => grant.accessRights.length, width: 76 },
  { key: "used", title: "Last used", type: "time", value: (grant) => grant.lastUsedAt, width: 168 },
  { key: "expires", title: "Expires if unused", type: "time", value: (grant) => grant.expiresAt, width: 168 },
];

/** The applications that act in the caller's name, or in anyone's for callers who manage keys. */
export function Applications() {
  const grants = useResource((signal) => fetchGrants(api, signal), []);
  const [open, setOpen] = useState<Grant>();
  return (
    <Panel
      title="Applications with access"
      actions={<Button kind="quiet" icon="refresh" label="Refresh" onClick={grants.reload} />}
    >
      <p class={css.soft}>Open an application to see its rights or to end its access.</p>
      <Loaded resource={grants} rows={4}>
        {(rows) => (
          <DataTable
            label="Applications"
            columns={COLUMNS}
            rows={rows}
            rowKey={(grant) => grant.id}
            onOpen={setOpen}
            empty={<Empty title="No applications">Applications appear here after someone has allowed them.</Empty>}
          />
        )}
      </Loaded>
      {open && <GrantDialog of={open} onClose={() => setOpen(undefined)} onEnded={grants.reload} />}
    </Panel>
  );
}

interface DialogProps {
  of: Grant;
  onClose: () => void;
  onEnded: () => void;
}

/** The rights of an application, and the end of its access. */
function GrantDialog({ of: grant, onClose, onEnded }: DialogProps) {
  const end = async () => {
    await endGrant(api, grant.id);
    onClose();
    onEnded();
  };
  return (
    <ConfirmDialog
      title={`End the access of ${grant.clientName}?`}
      label="End access"
      onClose={(failed) => {
        onClose();
        if (failed) {
          onEnded();
        }
      }}
      onConfirm={end}
    >
      <p>Its tokens stop working within seconds. The application can request access again.</p>
      <Facts
        facts={[
          { label: "Client ID", value: grant.clientId },
          { label: "Acts as", value: grant.principal },
          { label: "Rights", value: <RightsList rights={grant.accessRights} /> },
        ]}
      />
    </ConfirmDialog>
  );
}
