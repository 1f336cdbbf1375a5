import css from "@/administration/Administration.module.css";
import { type Database, type DataStore, type DeclaredContainer, fetchDataStores } from "@/api/dataStores.ts";
import { api } from "@/api/index.ts";
import { Status } from "@/components/Badge.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { Page, Panel } from "@/shell/Page.tsx";

const COLUMNS: readonly Column<DeclaredContainer>[] = [
  { key: "name", title: "Table", width: 180, value: ({ name }) => name },
  { key: "class", title: "Data class", width: 110, value: ({ dataClass }) => dataClass },
  { key: "expose", title: "Published operations", value: ({ expose }) => expose.join(", ") || "none" },
  {
    key: "path",
    title: "Partition key path",
    type: "code",
    width: 150,
    value: ({ partitionKeyPath }) => partitionKeyPath,
  },
  {
    key: "state",
    title: "Container",
    width: 110,
    value: ({ provisioned }) => (provisioned ? "exists" : "missing"),
    render: ({ provisioned }) => (
      <Status tone={provisioned ? "good" : "warn"}>{provisioned ? "exists" : "missing"}</Status>
    ),
  },
];

/** All data stores with their databases and declared containers. */
export function TableList() {
  const resource = useResource((signal) => fetchDataStores(api, signal), []);
  return (
    <Page
      title="Tables"
      description="Containers of your databases, and the operations on their documents that the API publishes."
    >
      <Loaded resource={resource} rows={6}>
        {(stores) =>
          stores.length === 0 ? (
            <Empty title="No data stores">
              The workspace document declares the accounts and databases of this workspace.
            </Empty>
          ) : (
            stores.map((store) => <Databases key={store.lookup} store={store} />)
          )
        }
      </Loaded>
    </Page>
  );
}

function Databases({ store }: { store: DataStore }) {
  return (
    <>
      {store.databases.map((database) => (
        <Panel key={database.lookup} title={`${store.lookup} / ${database.lookup}`}>
          <Access database={database} />
          <DataTable
            label={`Tables of ${database.lookup}`}
            columns={COLUMNS}
            rows={database.containers}
            rowKey={({ name }) => name}
            onOpen={({ name }) => navigate(buildHref("tables", [database.lookup, name]))}
            empty={<p class={css.soft}>No table. Create containers on the page Data.</p>}
          />
        </Panel>
      ))}
    </>
  );
}

function Access({ database }: { database: Database }) {
  return database.access === "granted" ? null : (
    <p>
      <Status tone="warn">The account refuses access to documents, so no operation works</Status>
    </p>
  );
}
