import { useMemo } from "preact/hooks";
import type { WarmQuery } from "@/api/queries.ts";
import { Badge } from "@/components/Badge.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { useResource } from "@/components/useResource.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { buildQueueAddress } from "@/pages/amendments/place.ts";
import { isAltered } from "@/pages/audit/alteration.ts";
import { parseRecordId } from "@/proof/record.ts";
import { buildHref, navigate } from "@/router/route.ts";
import type { PendingAmendment } from "./waiting.ts";

const HEIGHT = 360;

function buildAmendmentColumns(altered: ReadonlySet<PendingAmendment>): readonly Column<PendingAmendment>[] {
  return [
    { key: "scope", title: "Scope", type: "name", value: (row) => row.ScopeKey, width: 176, sortable: false },
    {
      key: "entity",
      title: "Entity",
      value: describeEntity,
      render: (row) => (
        <>
          {altered.has(row) && <Badge tone="bad">altered</Badge>} <VisibleText text={describeEntity(row)} />
        </>
      ),
      sortable: false,
    },
    { key: "fields", title: "Changed fields", value: (row) => row.ChangedFields?.join(", "), sortable: false },
    { key: "reason", title: "Reason", value: (row) => row.ReasonCategory, width: 160, sortable: false },
    { key: "author", title: "Amended by", value: (row) => row.AmendedBy, width: 216, sortable: false },
    { key: "at", title: "Amended", type: "time", value: (row) => row.AmendedAt, width: 168, sortable: false },
  ];
}

const WAITING: readonly Column<WarmQuery>[] = [
  { key: "name", title: "Query", value: (query) => query.name },
  { key: "surface", title: "Surface", value: (query) => query.surface, width: 160 },
  { key: "editedBy", title: "Edited by", value: (query) => query.editedBy, width: 240 },
  { key: "updatedAt", title: "Edited", type: "time", value: (query) => query.updatedAt, width: 168 },
];

const REJECTED: readonly Column<WarmQuery>[] = [
  { key: "name", title: "Query", value: (query) => query.name, width: 240 },
  { key: "comment", title: "Comment", value: (query) => query.rejection?.comment },
  { key: "editedBy", title: "Edited by", value: (query) => query.editedBy, width: 200 },
  { key: "rejectedBy", title: "Rejected by", value: (query) => query.rejection?.rejectedBy, width: 200 },
  { key: "rejectedAt", title: "Rejected", type: "time", value: (query) => query.rejection?.rejectedAt, width: 168 },
];

function describeEntity(row: PendingAmendment): string {
  return row.EntityID === undefined ? `Damaged record ${row.RecordID}` : `${row.EntityType} ${row.EntityID}`;
}

const NONE: ReadonlySet<PendingAmendment> = new Set();

/** Returns the amendments whose content no longer matches their hash, without those that are not readable at all. */
async function findAlteredRows(rows: readonly PendingAmendment[]): Promise<ReadonlySet<PendingAmendment>> {
  const readable = rows.filter(({ EntityID }) => EntityID !== undefined);
  const altered = await Promise.all(readable.map(isAltered));
  return new Set(readable.filter((_, index) => altered[index]));
}

interface Props<Row> {
  label: string;
  rows: readonly Row[];
}

/** Pending amendments, with a mark at altered ones; each row opens the amendment in the queue of its scope. */
export function AmendmentRows({ label, rows }: Props<PendingAmendment>) {
  const { data: altered = NONE } = useResource(() => findAlteredRows(rows), [rows]);
  const columns = useMemo(() => buildAmendmentColumns(altered), [altered]);
  return (
    <>
      <h3>Amendments</h3>
      <DataTable
        label={label}
        columns={columns}
        rows={rows}
        rowKey={(row) => `${row.ScopeKey}/${row.RecordID}`}
        onOpen={(row) => navigate(buildQueueAddress(row.ScopeKey, parseRecordId(row.RecordID)))}
        height={HEIGHT}
      />
    </>
  );
}

/** Draft queries; each row opens its query. */
export function DraftRows({ label, rows }: Props<WarmQuery>) {
  return (
    <>
      <h3>Draft queries</h3>
      <QueryRows label={label} rows={rows} columns={WAITING} />
    </>
  );
}

/** Rejected drafts with the comments; each row opens its query. */
export function RejectedRows({ label, rows }: Props<WarmQuery>) {
  return <QueryRows label={label} rows={rows} columns={REJECTED} />;
}

function QueryRows({ label, rows, columns }: Props<WarmQuery> & { columns: readonly Column<WarmQuery>[] }) {
  return (
    <DataTable
      label={label}
      columns={columns}
      rows={rows}
      rowKey={(query) => query.lookup}
      onOpen={(query) => navigate(buildHref("queries", [query.lookup]))}
      height={HEIGHT}
    />
  );
}
