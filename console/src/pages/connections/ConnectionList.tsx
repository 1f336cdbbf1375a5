import { useMemo } from "preact/hooks";
import { changeColumns, ListedItems } from "@/administration/ListedItems.tsx";
import { type ConnectionItem, fetchConnectionItems } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { CONNECTION_TYPES, ConnectionStatusBadge } from "@/components/ConnectionStatusBadge.tsx";
import type { Column } from "@/components/columns.ts";
import { Notice } from "@/components/Notice.tsx";
import { type Count, computeRate, formatRate } from "@/components/rates.ts";
import { useCounts } from "@/components/useCounts.ts";
import { usePolling } from "@/components/usePolling.ts";
import { buildHref } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";

const EVERY_MS = 5000;
const AFTER_FAILURE_MS = 15_000;

/** All connections with their state, refreshed every five seconds. */
export function ConnectionList() {
  const manages = useHasRights("Workspace.Catalog.Manage");
  const resource = usePolling(
    (signal) => fetchConnectionItems(api, signal),
    ({ failed }) => (failed ? AFTER_FAILURE_MS : EVERY_MS),
    [],
  );
  const counted = useMemo(() => resource.data?.map(({ lookup, stats }) => ({ id: lookup, stats })), [resource.data]);
  const counts = useCounts(counted);
  const columns = useMemo(() => buildColumns(counts), [counts]);
  return (
    <ListedItems
      page="connections"
      title="Connections"
      description="Sources of telemetry."
      addLabel={manages ? "Add connection" : undefined}
      resource={resource}
      columns={columns}
      toKey={({ lookup }) => lookup}
      empty={{ title: "No connections", text: "Add a connection to receive telemetry." }}
      above={(connections) => <Failures connections={connections} />}
    />
  );
}

function Failures({ connections }: { connections: readonly ConnectionItem[] }) {
  const failing = connections.filter(({ statusReason }) => statusReason !== null);
  return failing.length === 0 ? null : (
    <Notice kind="warn" title="Some connections have errors.">
      {failing.map(({ lookup, name, statusReason }) => (
        <p key={lookup}>
          <a href={buildHref("connections", [lookup])}>{name}</a>: {statusReason}
        </p>
      ))}
    </Notice>
  );
}

function buildColumns(counts: readonly Count[]): readonly Column<ConnectionItem>[] {
  return [
    {
      key: "status",
      title: "Status",
      width: 128,
      value: ({ status }) => status,
      render: ({ status }) => <ConnectionStatusBadge status={status} />,
    },
    { key: "name", title: "Name", value: ({ name }) => name },
    { key: "lookup", title: "ID", type: "code", width: 130, value: ({ lookup }) => lookup },
    { key: "type", title: "Type", width: 100, value: ({ type }) => CONNECTION_TYPES[type] },
    {
      key: "rate",
      title: "Per minute",
      type: "number",
      width: 104,
      value: ({ lookup }) => computeRate(counts, lookup),
      render: ({ lookup }) => <Rate perSecond={computeRate(counts, lookup)} />,
    },
    { key: "last", title: "Last message", type: "time", width: 164, value: ({ stats }) => stats?.lastMessage ?? null },
    ...changeColumns<ConnectionItem>(),
  ];
}

/** Messages a minute; unknown until two counts are known. */
export function Rate({ perSecond }: { perSecond: number | null }) {
  return perSecond === null ? (
    <span title={`Shown after two readings, ${EVERY_MS / 1000} seconds apart`}>–</span>
  ) : (
    formatRate(perSecond * 60)
  );
}
