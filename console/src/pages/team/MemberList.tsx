import { changeColumns, ListedItems } from "@/administration/ListedItems.tsx";
import { api } from "@/api/index.ts";
import { fetchMembers, type Member } from "@/api/team.ts";
import { Status } from "@/components/Badge.tsx";
import type { Column } from "@/components/columns.ts";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";
import { RetiredIds } from "./RetiredIds.tsx";

const COLUMNS: readonly Column<Member>[] = [
  { key: "name", title: "Name", value: ({ name }) => name },
  { key: "id", title: "ID", type: "code", width: 220, value: ({ id }) => id },
  { key: "role", title: "Role", width: 84, value: ({ role }) => role },
  { key: "extra", title: "Extra rights", type: "number", width: 104, value: ({ rights }) => rights.length },
  {
    key: "state",
    title: "State",
    width: 100,
    value: ({ enabled }) => (enabled ? "enabled" : "disabled"),
    render: ({ enabled }) => <Status tone={enabled ? "good" : "warn"}>{enabled ? "enabled" : "disabled"}</Status>,
  },
  { key: "kind", title: "Kind", width: 80, value: ({ service }) => (service ? "service" : "person") },
  ...changeColumns<Member>(),
];

/** All members, and the IDs of removed ones. */
export function MemberList() {
  const members = useResource((signal) => fetchMembers(api, signal), []);
  const manages = useHasRights("Workspace.Team.Manage");
  const audits = useHasRights("Workspace.Provenance.Read");
  return (
    <ListedItems
      page="team"
      title="Team"
      description="Members of the workspace: people and services, with their rights."
      addLabel={manages ? "Add member" : undefined}
      resource={members}
      columns={COLUMNS}
      toKey={({ id }) => id}
      empty={{ title: "No members", text: "Add the first member." }}
    >
      {audits && members.data && <RetiredIds members={members.data} />}
    </ListedItems>
  );
}
