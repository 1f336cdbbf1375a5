import { useMemo } from "preact/hooks";
import { Badge } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loading } from "@/components/Loading.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatCount } from "@/format.ts";
import css from "./Audit.module.css";
import { countFilters, type Place } from "./place.ts";
import { RemovedEndNotice } from "./RemovedEndNotice.tsx";
import type { RecordView } from "./recordView.ts";
import { findRemovedEnd } from "./removedEnd.ts";
import { useAltered } from "./useAltered.ts";
import type { ListingState } from "./useListing.ts";

function buildColumns(altered: ReadonlySet<number>): readonly Column<RecordView>[] {
  return [
    { key: "id", title: "Record", type: "code", value: (row) => row.id, width: 128, sortable: false },
    { key: "time", title: "Time", type: "time", value: (row) => row.time || null, width: 168, sortable: false },
    {
      key: "action",
      title: "Action",
      value: (row) => row.action,
      render: (row) => <Action row={row} isAltered={altered.has(row.sequence)} />,
      sortable: false,
    },
    { key: "type", title: "Entity type", value: (row) => row.entityType, sortable: false },
    { key: "entity", title: "Entity", value: (row) => row.entityId, sortable: false },
    { key: "who", title: "Who", value: (row) => row.who, sortable: false },
  ];
}

function Action({ row, isAltered }: { row: RecordView; isAltered: boolean }) {
  if (row.damaged) {
    return <Badge tone="bad">damaged</Badge>;
  }
  return (
    <>
      {isAltered && <Badge tone="bad">altered</Badge>} <VisibleText text={row.action} />
    </>
  );
}

interface Props {
  place: Place;
  listed: ListingState;
  onOpen: (sequence: number) => void;
  /** Reloads the list from the chain's end. */
  onNewest: () => void;
}

/** The records of a view, newest first. Scrolling loads older records; a bar offers newer ones. */
export function RecordTable({ place, listed, onOpen, onNewest }: Props) {
  const { listing, error, loading, more } = listed;
  const altered = useAltered(listing, countFilters(place.filters) > 0);
  const columns = useMemo(() => buildColumns(altered), [altered]);
  if (!listing) {
    return error === undefined ? (
      <Loading label="Reading records" rows={10} />
    ) : (
      <ErrorNotice error={error} onRetry={listed.refresh} />
    );
  }
  return (
    <div class={css.records}>
      <NewerBar listed={listed} onNewest={onNewest} />
      {place.at === undefined && <RemovedEnd place={place} ask={listed.ask} top={listing.top} />}
      <DataTable
        label="Records, newest first"
        columns={place.record === undefined ? columns : columns.filter(({ key }) => key !== "type")}
        rows={listing.rows}
        rowKey={(row) => `${row.id} ${row.hash}`}
        selected={place.record === undefined ? undefined : (row) => row.sequence === place.record}
        onOpen={(row) => onOpen(row.sequence)}
        onEnd={more}
        height={620}
        empty={<Nothing place={place} onNewest={onNewest} />}
      />
      {error !== undefined && <ErrorNotice error={error} onRetry={more} />}
      {listing.rows.length > 0 && (
        <p class={css.foot} role="status">
          {formatCount(listing.rows.length)} {listing.rows.length === 1 ? "record" : "records"} shown
          {listing.hasMore ? "; scroll for older ones." : ": all matching records."}
          {loading && " Reading older records …"}
        </p>
      )}
    </div>
  );
}

/** The warning about records that were removed from the chain's end, which the list cannot show. */
function RemovedEnd({ place, ask, top }: { place: Place; ask: ListingState["ask"]; top: number }) {
  const covered = useResource((signal) => findRemovedEnd(ask, place.chain, top, signal), [ask, top]).data;
  return covered === undefined ? null : <RemovedEndNotice covered={covered} />;
}

function NewerBar({ listed, onNewest }: { listed: ListingState; onNewest: () => void }) {
  const { count: waiting, more } = listed.newer;
  return (
    <div class={css.newer} role="status">
      {waiting > 0 && (
        <Button icon="up" wide onClick={onNewest}>
          {more ? `More than ${formatCount(waiting)}` : formatCount(waiting)} newer{" "}
          {waiting === 1 ? "record" : "records"}: show {waiting === 1 ? "it" : "them"}
        </Button>
      )}
    </div>
  );
}

function Nothing({ place, onNewest }: { place: Place; onNewest: () => void }) {
  if (countFilters(place.filters) > 0 || place.at !== undefined) {
    return (
      <Empty title="No record matches">
        Widen the dates, or clear the filters. Filters match whole words and are case-sensitive.
      </Empty>
    );
  }
  return (
    <Empty
      title="No records yet"
      action={
        <Button icon="refresh" onClick={onNewest}>
          Refresh
        </Button>
      }
    >
      {place.chain.scopeKey === ""
        ? "Each change of the workspace, each key and each token adds a record."
        : "This scope has no records. Check its spelling, or write its first event."}
    </Empty>
  );
}
