import css from "@/administration/Administration.module.css";
import type { Member } from "@/api/team.ts";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { buildRecordLink } from "@/history/itemHistory.ts";
import { Panel } from "@/shell/Page.tsx";
import { fetchRemovals, listRetiredIds, type RetiredId } from "./retired.ts";

const COLUMNS: readonly Column<RetiredId>[] = [
  { key: "id", title: "ID", type: "code", width: 220, value: ({ id }) => id },
  { key: "name", title: "Name", value: ({ name }) => name },
  { key: "by", title: "Removed by", width: 190, value: ({ removedBy }) => removedBy },
  { key: "at", title: "Removed", type: "time", width: 164, value: ({ removedAt }) => removedAt },
  {
    key: "record",
    title: "Audit record",
    width: 140,
    value: ({ recordId }) => recordId,
    render: ({ recordId }) => <a href={buildRecordLink("AccessControl", { RecordID: recordId })}>{recordId}</a>,
  },
];

/** IDs of removed members, which cannot be used again; from the audit log. */
export function RetiredIds({ members }: { members: readonly Member[] }) {
  const removals = useResource((signal) => fetchRemovals(signal), [members]);
  return (
    <Panel title="Retired IDs">
      <Loaded resource={removals} rows={2}>
        {(events) => {
          const retired = listRetiredIds(events, members);
          return (
            <>
              <p class={css.soft}>
                {retired.length === 0
                  ? "No member was removed. The ID of a removed member cannot be used again."
                  : "Audit records name these members, so their IDs cannot be used again."}
              </p>
              {retired.length > 0 && (
                <DataTable label="Retired IDs" columns={COLUMNS} rows={retired} rowKey={({ id }) => id} height={240} />
              )}
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}
