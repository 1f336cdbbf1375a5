import type { ComponentChildren } from "preact";
import { type AuditScope, fetchAllAuditScopes } from "@/api/auditScopes.ts";
import { type ConnectionItem, fetchConnectionItems } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { isWithoutAuditLog } from "@/api/problem.ts";
import { Status } from "@/components/Badge.tsx";
import { ConnectionStatusBadge } from "@/components/ConnectionStatusBadge.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { usePolling } from "@/components/usePolling.ts";
import type { Resource } from "@/components/useResource.ts";
import { formatCount, formatQuantity } from "@/format.ts";
import { AlertTable } from "@/pages/alerts/AlertTable.tsx";
import { fetchActiveAlerts } from "@/pages/alerts/activeAlerts.ts";
import { isFailing } from "@/pages/connections/failing.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { Panel } from "@/shell/Page.tsx";

const POLL_MS = 15_000;
const COUNT_MS = 600_000;
const HEIGHT = 320;

const FAILING: readonly Column<ConnectionItem>[] = [
  { key: "name", title: "Connection", value: ({ name }) => name, width: 200 },
  {
    key: "status",
    title: "Status",
    width: 128,
    value: ({ status }) => status,
    render: ({ status }) => <ConnectionStatusBadge status={status} />,
  },
  { key: "reason", title: "Reason", value: ({ statusReason }) => statusReason },
  { key: "last", title: "Last message", type: "time", width: 168, value: ({ stats }) => stats?.lastMessage ?? null },
];

/** The firing alerts. */
export function FiringAlerts() {
  const active = usePolling(
    (signal) => fetchActiveAlerts(api, signal),
    () => POLL_MS,
    [],
  );
  return (
    <Panel title="Firing alerts">
      <Loaded resource={active} rows={1}>
        {({ alerts }) => {
          const firing = alerts.filter(({ state }) => state === "firing");
          return firing.length === 0 ? (
            <Sound>No alert is firing</Sound>
          ) : (
            <AlertTable
              label="Firing alerts"
              alerts={firing}
              empty={{ title: "No alert is firing", text: "" }}
              onChanged={active.reload}
            />
          );
        }}
      </Loaded>
    </Panel>
  );
}

/** The connections with errors, with the reasons. */
export function FailingConnections() {
  const resource = usePolling(
    (signal) => fetchConnectionItems(api, signal),
    () => POLL_MS,
    [],
  );
  return (
    <Panel title="Connections with errors">
      <Loaded resource={resource} rows={1}>
        {(connections) => {
          const failing = connections.filter(isFailing);
          return failing.length === 0 ? (
            <Sound>
              {formatQuantity(connections.filter(({ enabled }) => enabled).length, "enabled connection")}, no errors
            </Sound>
          ) : (
            <DataTable
              label="Connections with errors"
              columns={FAILING}
              rows={failing}
              rowKey={({ lookup }) => lookup}
              onOpen={({ lookup }) => navigate(buildHref("connections", [lookup]))}
              height={HEIGHT}
            />
          );
        }}
      </Loaded>
    </Panel>
  );
}

type BrokenChains = Resource<readonly AuditScope[]>;

/** The verdict on all chains, and the number of verified ones; the banner of the page names broken ones. */
export function ChainState({ broken }: { broken: BrokenChains }) {
  const resource = usePolling(
    (signal) => fetchAllAuditScopes(api, undefined, signal),
    () => COUNT_MS,
    [],
  );
  if (isWithoutAuditLog(resource.error)) {
    return null;
  }
  return (
    <Panel title="Audit chains">
      <Loaded resource={resource} rows={1}>
        {(scopes) => <ChainSummary scopes={scopes} broken={broken} />}
      </Loaded>
    </Panel>
  );
}

function ChainSummary({ scopes, broken }: { scopes: readonly AuditScope[]; broken: BrokenChains }) {
  const verified = scopes.filter(({ lastVerdict }) => lastVerdict !== null).length;
  return (
    <p>
      <ChainVerdict broken={broken} isVerified={verified > 0} />
      {" · "}
      {formatCount(verified)} of {formatQuantity(scopes.length, "chain")} verified so far. The service verifies the
      chains that have new records. <a href={buildHref("scopes")}>All audit scopes</a>
    </p>
  );
}

function ChainVerdict({ broken, isVerified }: { broken: BrokenChains; isVerified: boolean }) {
  const { data, error } = broken;
  if (data && data.length > 0) {
    return <Status tone="bad">{formatQuantity(data.length, "broken chain")}</Status>;
  }
  // An earlier reply does not prove that the chains are intact now.
  if (!data || error !== undefined) {
    return <Status>Verdict unknown</Status>;
  }
  return isVerified ? <Status tone="good">All verified chains are intact</Status> : <Status>Not verified yet</Status>;
}

function Sound({ children }: { children: ComponentChildren }) {
  return (
    <p>
      <Status tone="good">{children}</Status>
    </p>
  );
}
