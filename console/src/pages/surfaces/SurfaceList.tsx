import { changeColumns, ListedItems } from "@/administration/ListedItems.tsx";
import { api } from "@/api/index.ts";
import { fetchSurfaceItems, type SurfaceItem } from "@/api/surfaces.ts";
import type { Column } from "@/components/columns.ts";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";

const COLUMNS: readonly Column<SurfaceItem>[] = [
  { key: "name", title: "Name", value: ({ name }) => name },
  { key: "lookup", title: "ID", type: "code", width: 140, value: ({ lookup }) => lookup },
  { key: "description", title: "Description", value: ({ description }) => description },
  { key: "connections", title: "Connections", value: ({ connections }) => connections.join(", ") },
  { key: "queries", title: "Queries", type: "number", width: 80, value: ({ queries }) => queries.length },
  ...changeColumns<SurfaceItem>(),
];

/** All surfaces. */
export function SurfaceList() {
  const surfaces = useResource((signal) => fetchSurfaceItems(api, signal), []);
  const manages = useHasRights("Workspace.Catalog.Manage");
  return (
    <ListedItems
      page="surfaces"
      title="Surfaces"
      description="Groups of connections, with the queries over them."
      addLabel={manages ? "Add surface" : undefined}
      resource={surfaces}
      columns={COLUMNS}
      toKey={({ lookup }) => lookup}
      empty={{ title: "No surfaces", text: "Add a surface to group connections and to write queries over them." }}
    />
  );
}
