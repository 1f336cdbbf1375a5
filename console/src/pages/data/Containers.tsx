import { useMemo, useState } from "preact/hooks";
import type { Container, Table } from "@/api/tables.ts";
import { Badge, Status } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { buildHref } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { NewContainer, RemoveContainer } from "./ContainerDialogs.tsx";
import { fetchContainers } from "./calls.ts";

/** A container, or a table without container data. */
interface Row extends Partial<Container> {
  name: string;
  partitionKeyPath: string;
  table: Table | undefined;
}

interface Props {
  database: string;
  tables: readonly Table[];
}

/** A database's containers, with links to their published documents. */
export function Containers({ database, tables }: Props) {
  const [reads, manages] = [useHasRights("Workspace.DataStore.Read"), useHasRights("Workspace.DataStore.Manage")];
  const [making, setMaking] = useState(false);
  const [removing, setRemoving] = useState<string>();
  const resource = useResource(
    async (signal) => mergeRows(reads ? await fetchContainers(database, signal) : [], tables),
    [database, reads],
  );
  const columns = useMemo(() => buildColumns(reads, manages ? setRemoving : undefined), [reads, manages]);
  return (
    <Panel
      title={`Containers of ${database}`}
      actions={
        manages && (
          <Button icon="plus" onClick={() => setMaking(true)}>
            New container
          </Button>
        )
      }
    >
      <Loaded resource={resource}>
        {(rows) => (
          <DataTable
            label={`Containers of ${database}`}
            columns={columns}
            rows={rows}
            rowKey={(row) => row.name}
            empty={
              <Empty title="No containers">
                {manages ? "Create one here" : "Ask a person with Workspace.DataStore.Manage to create one"}, or declare
                it in the workspace document.
              </Empty>
            }
          />
        )}
      </Loaded>
      {making && <NewContainer database={database} onClose={() => setMaking(false)} onDone={() => resource.reload()} />}
      {removing !== undefined && (
        <RemoveContainer
          database={database}
          name={removing}
          onClose={() => setRemoving(undefined)}
          onDone={() => resource.reload()}
        />
      )}
    </Panel>
  );
}

function mergeRows(listed: readonly Container[], tables: readonly Table[]): Row[] {
  const rows: Row[] = listed.map((each) => ({ ...each, table: tables.find((table) => table.name === each.name) }));
  const missing = tables.filter((table) => !listed.some((each) => each.name === table.name));
  return [...rows, ...missing.map((table) => ({ name: table.name, partitionKeyPath: table.partitionKeyPath, table }))];
}

function buildColumns(reads: boolean, onRemove: ((name: string) => void) | undefined): readonly Column<Row>[] {
  const columns: Column<Row>[] = [
    {
      key: "name",
      title: "Container",
      value: ({ name }) => name,
      render: ({ name, table }) =>
        table ? <a href={buildHref("data", [table.database, table.store, table.name])}>{name}</a> : name,
    },
    {
      key: "path",
      title: "Partition key",
      type: "code",
      width: 112,
      value: ({ partitionKeyPath }) => partitionKeyPath,
    },
    {
      key: "verbs",
      title: "Documents",
      width: 240,
      value: ({ table }) => [...(table?.verbs ?? [])].join(", "),
      render: ({ table }) => (table ? [...table.verbs].join(", ") : <Badge>not published</Badge>),
    },
  ];
  return [...columns, ...(reads ? RECORD : []), ...(onRemove ? [buildRemovalColumn(onRemove)] : [])];
}

const RECORD: readonly Column<Row>[] = [
  { key: "class", title: "Data class", width: 100, value: ({ dataClass }) => dataClass },
  {
    key: "declared",
    title: "Declared",
    width: 92,
    value: ({ Declared }) => Declared,
    render: ({ Declared }) => <Status tone={Declared ? "good" : "neutral"}>{Declared ? "yes" : "no"}</Status>,
  },
  {
    key: "provisioned",
    title: "Exists",
    width: 118,
    value: ({ provisioned }) => provisioned,
    render: ({ provisioned }) => (
      <Status tone={provisioned ? "good" : "warn"}>{provisioned ? "exists" : "missing"}</Status>
    ),
  },
];

function buildRemovalColumn(onRemove: (name: string) => void): Column<Row> {
  return {
    key: "remove",
    title: "Record",
    width: 68,
    sortable: false,
    value: () => null,
    render: ({ name }) => <Button kind="quiet" icon="close" label={`Remove ${name}`} onClick={() => onRemove(name)} />,
  };
}
