import { ChangePanel } from "@/administration/ChangePanel.tsx";
import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { ItemPage, type ShownItem } from "@/administration/ItemPage.tsx";
import { ReadOnlyNotice } from "@/administration/ReadOnlyNotice.tsx";
import { RemoveButton } from "@/administration/RemoveButton.tsx";
import { useItemForm } from "@/administration/useItemForm.ts";
import { type ConnectionItem, connectionPath } from "@/api/connections.ts";
import { showToast } from "@/components/toasts.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { ConnectionFields } from "./ConnectionFields.tsx";
import { ConnectionState } from "./ConnectionState.tsx";
import { CONNECTION_RULES, NEW_CONNECTION } from "./connectionRules.ts";

/** The form that adds a connection. */
export function NewConnection() {
  const form = useItemForm(CONNECTION_RULES, null, NEW_CONNECTION, (connection) => {
    showToast(`“${connection.name}” is added`);
    navigate(buildHref("connections", [connection.lookup]));
  });
  return (
    <Page title="Add connection" description="A source of telemetry.">
      <Panel>
        <ItemFormFrame
          form={form}
          editable
          createLabel="Add connection"
          onCancel={() => navigate(buildHref("connections"))}
        >
          <ConnectionFields form={form} />
        </ItemFormFrame>
      </Panel>
    </Page>
  );
}

/** One connection: state, definition and changes. */
export function ConnectionPage({ lookup }: { lookup: string }) {
  const manages = useHasRights("Workspace.Catalog.Manage");
  return (
    <ItemPage<ConnectionItem>
      path={connectionPath(lookup)}
      name={lookup}
      list={{ page: "connections", title: "All connections" }}
      toTitle={({ name }) => name}
      actions={({ item, reload }) =>
        manages && (
          <RemoveButton
            noun="connection"
            name={item.name}
            path={connectionPath(item.lookup)}
            etag={item.etag}
            page="connections"
            onReload={reload}
          >
            <p>The workspace rejects its messages from then on. Stored telemetry and audit records remain.</p>
          </RemoveButton>
        )
      }
    >
      {(shown) => <Shown {...shown} editable={manages} />}
    </ItemPage>
  );
}

function Shown({ item, isRemoved, replace, editable }: ShownItem<ConnectionItem> & { editable: boolean }) {
  const form = useItemForm(
    CONNECTION_RULES,
    item,
    NEW_CONNECTION,
    (saved) => {
      replace(saved);
      showToast(`“${saved.name}” is saved`);
    },
    replace,
  );
  return (
    <>
      {!editable && <ReadOnlyNotice right="Workspace.Catalog.Manage" />}
      <ConnectionState item={item} />
      <Panel title="Connection">
        <ItemFormFrame form={form} editable={editable} createLabel="Add connection">
          <ConnectionFields form={form} />
        </ItemFormFrame>
      </Panel>
      <ChangePanel
        isRemoved={isRemoved}
        item={item}
        audited={{ target: "PlatformConfig", entityTypes: ["Connection"], entityId: item.lookup }}
      />
    </>
  );
}
