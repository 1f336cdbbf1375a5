import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type AmendmentFilters, type AmendmentRecord, queryAmendments } from "@/api/amendments.ts";
import { api, isAbort } from "@/api/index.ts";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { Loading } from "@/components/Loading.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { navigate } from "@/router/route.ts";
import { BrokenLinksNotice } from "./AlteredNotice.tsx";
import { AmendmentStatus } from "./AmendmentStatus.tsx";
import css from "./Amendments.module.css";
import { collectStatuses, type Entry, findCurrentStatus, findLastSequence, toEntry } from "./entries.ts";
import { buildEntityAddress } from "./place.ts";
import { useAlteredIds } from "./useAlteredRecords.ts";

const PAGE = 200;
const NONE: ReadonlySet<string> = new Set();
const NO_RECORDS: readonly AmendmentRecord[] = [];

type Row = AmendmentRecord & { entry: Entry; current: string };

const COLUMNS: readonly Column<Row>[] = [
  { key: "id", title: "Record", type: "code", value: (row) => row.entry.id, width: 128, sortable: false },
  { key: "at", title: "Time", type: "time", value: (row) => row.entry.at || null, width: 168, sortable: false },
  { key: "what", title: "What", value: (row) => describeEntry(row.entry), width: 250, sortable: false },
  {
    key: "status",
    title: "Status",
    value: (row) => row.current,
    render: (row) => <AmendmentStatus status={row.current} />,
    width: 110,
    sortable: false,
  },
  { key: "type", title: "Entity type", value: (row) => row.EntityType, sortable: false },
  { key: "entity", title: "Entity", value: (row) => row.EntityID, sortable: false },
  { key: "who", title: "Who", value: (row) => row.entry.who, sortable: false },
];

function describeEntry(entry: Entry): string {
  if (entry.decision) return `${entry.decision.Meaning} of ${entry.decision.AmendmentID}`;
  return `amendment: ${entry.amendment?.ReasonCategory ?? "damaged"}`;
}

const STATUSES = [
  { value: "", label: "any" },
  { value: "pending", label: "pending" },
  { value: "approved", label: "approved" },
  { value: "rejected", label: "rejected" },
] as const;

interface State {
  rows: readonly AmendmentRecord[] | undefined;
  /** Ids of the pending amendments among the rows. */
  pending: ReadonlySet<string>;
  hasMore: boolean;
  loading: boolean;
  error: unknown;
}

/** Amendments and decisions, newest first. */
export function AllAmendments({ scope }: { scope: string }) {
  const [status, setStatus] = useState<(typeof STATUSES)[number]["value"]>("");
  const [entity, setEntity] = useState("");
  const [author, setAuthor] = useState("");
  const [state, setState] = useState<State>({
    rows: undefined,
    pending: NONE,
    hasMore: true,
    loading: true,
    error: undefined,
  });
  const work = useRef<AbortController>(undefined);
  const filters: AmendmentFilters = { status: status || undefined, entityId: entity, amendedBy: author };
  const read = (before: readonly AmendmentRecord[]) => {
    work.current?.abort();
    const abort = new AbortController();
    work.current = abort;
    const last = findLastSequence(before.map(({ RecordID }) => RecordID));
    const toSequence = last === undefined ? undefined : last - 1;
    setState((now) => ({ ...now, loading: true, error: undefined }));
    loadPage(scope, { ...filters, toSequence }, abort.signal).then(
      ({ records, hasMore, pending }) =>
        abort.signal.aborted ||
        setState((now) => ({
          rows: [...before, ...records],
          pending: before.length === 0 ? pending : new Set([...now.pending, ...pending]),
          hasMore,
          loading: false,
          error: undefined,
        })),
      (error: unknown) =>
        abort.signal.aborted ||
        isAbort(error) ||
        // Rows of other filters must not remain, because a retry would append to them.
        setState((now) => ({ ...now, rows: before.length === 0 ? undefined : before, loading: false, error })),
    );
  };
  useLayoutEffect(() => {
    read([]);
    return () => work.current?.abort();
  }, [scope, status, entity, author]);
  const { rows: records = NO_RECORDS, pending } = state;
  const altered = useAlteredIds(records);
  const rows = useMemo(() => toRows(records, pending, altered), [records, pending, altered]);
  const more = () => {
    if (state.rows && state.hasMore && !state.loading && state.error === undefined) {
      read(state.rows);
    }
  };
  return (
    <div class={css.list}>
      <div class={css.filters}>
        <Select label="Status" value={status} options={STATUSES} onChange={setStatus} />
        <Field label="Entity" value={entity} onInput={setEntity} placeholder="any" />
        <Field label="Made by" value={author} onInput={setAuthor} placeholder="anyone" />
      </div>
      {state.error !== undefined && <ErrorNotice error={state.error} onRetry={() => read(state.rows ?? [])} />}
      <BrokenLinksNotice records={records} />
      {state.rows ? (
        <DataTable
          label="Amendments and decisions, newest first"
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => row.entry.id}
          onOpen={(row) => row.entry.damaged || navigate(buildEntityAddress(scope, row.EntityID))}
          onEnd={more}
          empty={
            <Empty title="No amendments">
              No record of this scope matches. Clear the filters, or check the scope's spelling.
            </Empty>
          }
        />
      ) : (
        state.error === undefined && <Loading rows={8} />
      )}
    </div>
  );
}

type PageFilters = AmendmentFilters & { toSequence: number | undefined };

/**
 * Loads a page of records, and the ids of its pending amendments. A decision is a record of its own, so the amendment
 * itself stays stored as pending.
 */
async function loadPage(scope: string, filters: PageFilters, signal: AbortSignal) {
  const found = await queryAmendments(api, scope, { ...filters, limit: PAGE }, signal);
  const asked = filters.status !== "pending" && found.records.some((record) => record.Status === "pending");
  const waiting = asked
    ? await queryAmendments(api, scope, { ...filters, status: "pending", limit: PAGE }, signal)
    : { records: filters.status === "pending" ? found.records : [] };
  return { ...found, pending: new Set(waiting.records.map((record) => record.RecordID)) };
}

function toRows(
  records: readonly AmendmentRecord[],
  pending: ReadonlySet<string>,
  altered: ReadonlySet<string>,
): Row[] {
  const known = collectStatuses([...records].reverse(), pending, altered);
  return records.map((record) => {
    const entry = toEntry(record);
    return { ...record, entry, current: findCurrentStatus(entry, known) };
  });
}
