import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Connection, ConnectionStatus } from "@/api/catalog.ts";
import { api } from "@/api/index.ts";
import { fetchConnections } from "@/api/plant.ts";
import { Status } from "@/components/Badge.tsx";
import { CONNECTION_TYPES, ConnectionStatusBadge } from "@/components/ConnectionStatusBadge.tsx";
import { joinClasses } from "@/components/classes.ts";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { type Count, computeRate, formatRate } from "@/components/rates.ts";
import { Time } from "@/components/Time.tsx";
import { useCounts } from "@/components/useCounts.ts";
import { usePolling } from "@/components/usePolling.ts";
import { formatCount } from "@/format.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Overview.module.css";

const EVERY_MS = 5000;
const AFTER_FAILURE_MS = 15_000;
const TITLES = {
  connected: "Connected",
  waiting: "Not connected",
  errors: "Connections with errors",
  rate: "Messages per second",
  newest: "Newest message",
};

interface Props {
  /** The connection in the live chart, "" for all. */
  selected: string;
  /** Shows the stream of a connection; undefined if the token cannot open it. */
  onOpen: ((connection: string) => void) | undefined;
  /** Content between the figures and the table. */
  children: ComponentChildren;
}

/** The connections with the time of the reply. */
interface Reading {
  connections: Connection[];
  at: Date;
}

/** Figures and a table of all connections: status, message rate and newest message. */
export function Connections({ selected, onOpen, children }: Props) {
  const resource = usePolling<Reading>(
    async (signal) => ({ connections: await fetchConnections(api, signal), at: new Date() }),
    ({ failed }) => (failed ? AFTER_FAILURE_MS : EVERY_MS),
    [],
  );
  const { data, error } = resource;
  const connections = data?.connections;
  const counts = useCounts(connections);
  const columns = useMemo(() => buildColumns(counts), [counts]);
  const outdated = error !== undefined && data !== undefined;
  return (
    <>
      <Loaded resource={resource} placeholder={<FiguresPlaceholder />}>
        {(shown) => (
          <div class={joinClasses(outdated && css.outdated)}>
            {outdated && (
              <p class={css.age}>
                Outdated: the values are from <Time at={shown.at.toISOString()} />.
              </p>
            )}
            <Figures connections={shown.connections} counts={counts} />
          </div>
        )}
      </Loaded>
      {children}
      {connections && (
        <div class={joinClasses(outdated && css.outdated)}>
          <Panel title="Connections">
            <DataTable
              label="Connections"
              columns={columns}
              rows={connections}
              rowKey={(row) => row.id}
              height={300}
              {...(onOpen ? { onOpen: (row: Connection) => onOpen(row.id === selected ? "" : row.id) } : {})}
              {...(selected ? { selected: (row: Connection) => row.id === selected } : {})}
              empty={<Empty title="No connections">An administrator adds them on the page Connections.</Empty>}
            />
          </Panel>
        </div>
      )}
    </>
  );
}

function Figures({ connections, counts }: { connections: readonly Connection[]; counts: readonly Count[] }) {
  const having = (status: ConnectionStatus) => connections.filter((each) => each.status === status).length;
  const waiting = having("CONNECTING") + having("DISCONNECTED");
  const rates = connections.map(({ id }) => computeRate(counts, id)).filter((each) => each !== null);
  const newest = connections
    .map((each) => each.stats?.lastMessage ?? "")
    .sort()
    .at(-1);
  return (
    <dl class={css.figures}>
      <div>
        <dt>{TITLES.connected}</dt>
        <dd>
          {having("CONNECTED")} <small>of {connections.length}</small>
        </dd>
      </div>
      <div>
        <dt>{TITLES.waiting}</dt>
        <dd>
          <Status tone={waiting > 0 ? "warn" : "good"}>{waiting}</Status>
        </dd>
      </div>
      <div>
        <dt>{TITLES.errors}</dt>
        <dd>
          <Status tone={having("ERROR") > 0 ? "bad" : "good"}>{having("ERROR")}</Status>
        </dd>
      </div>
      <div>
        <dt>{TITLES.rate}</dt>
        <dd>{rates.length === 0 ? <UnknownRate /> : formatRate(rates.reduce((sum, each) => sum + each, 0))}</dd>
      </div>
      <div>
        <dt>{TITLES.newest}</dt>
        <dd>
          <Time at={newest} />
        </dd>
      </div>
    </dl>
  );
}

/** The figures before the first reply, of the same size. */
function FiguresPlaceholder() {
  return (
    <dl class={css.figures} aria-busy="true">
      {Object.values(TITLES).map((title) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>–</dd>
        </div>
      ))}
    </dl>
  );
}

function buildColumns(counts: readonly Count[]): readonly Column<Connection>[] {
  return [
    {
      key: "status",
      title: "Status",
      width: 132,
      value: ({ status }) => status,
      render: ({ status }) => <ConnectionStatusBadge status={status} />,
    },
    { key: "name", title: "Name", value: ({ name }) => name },
    { key: "id", title: "ID", type: "code", width: 140, value: ({ id }) => id },
    { key: "type", title: "Type", width: 96, value: ({ type }) => CONNECTION_TYPES[type] },
    {
      key: "rate",
      title: "Per second",
      type: "number",
      width: 100,
      value: ({ id }) => computeRate(counts, id),
      render: ({ id }) => formatCountValue(computeRate(counts, id)),
    },
    {
      key: "received",
      title: "Received",
      type: "number",
      width: 110,
      value: ({ stats }) => stats?.messagesReceived ?? null,
      render: ({ stats }) => (stats ? formatCount(stats.messagesReceived) : "–"),
    },
    { key: "last", title: "Last message", type: "time", width: 164, value: ({ stats }) => stats?.lastMessage ?? null },
    { key: "surfaces", title: "Surfaces", value: ({ surfaces }) => surfaces.map(({ name }) => name).join(", ") },
  ];
}

function formatCountValue(value: number | null) {
  return value === null ? <UnknownRate /> : formatRate(value);
}

function UnknownRate() {
  return <span title={`Shown after two readings, ${EVERY_MS / 1000} seconds apart`}>–</span>;
}
