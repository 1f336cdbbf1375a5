import { useEffect, useMemo, useState } from "preact/hooks";
import type { Connection, ConnectionStatus } from "@/api/catalog.ts";
import { api } from "@/api/index.ts";
import { fetchConnections } from "@/api/plant.ts";
import { Status, type Tone } from "@/components/Badge.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Time } from "@/components/Time.tsx";
import { usePolling } from "@/components/usePolling.ts";
import { formatCount } from "@/format.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Overview.module.css";
import { addCount, type Count, computeRate, formatRate } from "./rates.ts";

const EVERY_MS = 5000;
const AFTER_FAILURE_MS = 15_000;
const TONES: Record<ConnectionStatus, Tone> = {
  CONNECTED: "good",
  CONNECTING: "accent",
  DISCONNECTED: "neutral",
  ERROR: "bad",
};
const TYPES: Record<Connection["type"], string> = {
  CLOUD_IOT_HUB: "IoT Hub",
  CLOUD_EVENT_HUB: "Event Hub",
  SIMULATOR: "Simulator",
};

interface Props {
  /** The connection in the live chart, "" for all. */
  selected: string;
  /** Shows the stream of a connection; undefined if the token cannot open it. */
  onOpen: ((connection: string) => void) | undefined;
}

/** A table of all connections: status, message rate and newest message. */
export function Connections({ selected, onOpen }: Props) {
  const resource = usePolling(
    (signal) => fetchConnections(api, signal),
    ({ failed }) => (failed ? AFTER_FAILURE_MS : EVERY_MS),
    [],
  );
  const counts = useCounts(resource.data);
  const columns = useMemo(() => buildColumns(counts), [counts]);
  return (
    <Loaded resource={resource} rows={6}>
      {(data) => (
        <>
          <Figures connections={data} counts={counts} />
          <Panel title="Connections">
            <DataTable
              label="Connections"
              columns={columns}
              rows={data}
              rowKey={(row) => row.id}
              height={300}
              {...(onOpen ? { onOpen: (row: Connection) => onOpen(row.id === selected ? "" : row.id) } : {})}
              {...(selected ? { selected: (row: Connection) => row.id === selected } : {})}
              empty={
                <Empty title="No connections">
                  Declare connections in the workspace document and apply it; docs/workspace-document.md explains how.
                </Empty>
              }
            />
          </Panel>
        </>
      )}
    </Loaded>
  );
}

/** Holds the latest counts, to compute rates. */
function useCounts(data: readonly Connection[] | undefined): readonly Count[] {
  const [counts, setCounts] = useState<readonly Count[]>([]);
  useEffect(() => {
    if (data) {
      setCounts((before) => addCount(before, data, Date.now()));
    }
  }, [data]);
  return counts;
}

function Figures({ connections, counts }: { connections: readonly Connection[]; counts: readonly Count[] }) {
  const having = (status: ConnectionStatus) => connections.filter((each) => each.status === status).length;
  const rates = connections.map(({ id }) => computeRate(counts, id)).filter((each) => each !== null);
  const newest = connections
    .map((each) => each.stats?.lastMessage ?? "")
    .sort()
    .at(-1);
  return (
    <dl class={css.figures}>
      <div>
        <dt>Connected</dt>
        <dd>
          {having("CONNECTED")} <small>of {connections.length}</small>
        </dd>
      </div>
      <div>
        <dt>Not working</dt>
        <dd>
          <Status tone={having("ERROR") > 0 ? "bad" : "good"}>{having("ERROR")}</Status>
        </dd>
      </div>
      <div>
        <dt>Messages a second</dt>
        <dd>{rates.length === 0 ? <UnknownRate /> : formatRate(rates.reduce((sum, each) => sum + each, 0))}</dd>
      </div>
      <div>
        <dt>Newest message</dt>
        <dd>
          <Time at={newest} />
        </dd>
      </div>
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
      render: ({ status }) => <Status tone={TONES[status]}>{status.toLowerCase()}</Status>,
    },
    { key: "name", title: "Name", value: ({ name }) => name },
    { key: "id", title: "Lookup", type: "code", width: 140, value: ({ id }) => id },
    { key: "type", title: "Type", width: 96, value: ({ type }) => TYPES[type] },
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
  return <span title={`The rate needs two counts, ${EVERY_MS / 1000} seconds apart`}>–</span>;
}
