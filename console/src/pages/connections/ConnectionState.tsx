import { useMemo } from "preact/hooks";
import { type ConnectionItem, connectionPath } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { ConnectionStatusBadge } from "@/components/ConnectionStatusBadge.tsx";
import { Facts } from "@/components/Facts.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Notice } from "@/components/Notice.tsx";
import { computeRate } from "@/components/rates.ts";
import { Time } from "@/components/Time.tsx";
import { useCounts } from "@/components/useCounts.ts";
import { usePolling } from "@/components/usePolling.ts";
import { formatCount } from "@/format.ts";
import { buildHref } from "@/router/route.ts";
import { Panel } from "@/shell/Page.tsx";
import { Rate } from "./ConnectionList.tsx";

const EVERY_MS = 5000;

/** The state of a connection, refreshed every five seconds. */
export function ConnectionState({ item }: { item: ConnectionItem }) {
  const resource = usePolling(
    (signal) => api.get<ConnectionItem>(connectionPath(item.lookup), { signal }),
    () => EVERY_MS,
    [item.etag],
  );
  const { data } = resource;
  const counted = useMemo(() => data && [{ id: data.lookup, stats: data.stats }], [data]);
  const rate = computeRate(useCounts(counted), item.lookup);
  return (
    <Panel title="State">
      <Loaded resource={{ ...resource, data: data ?? item }}>
        {(shown) => (
          <>
            <Facts
              facts={[
                { label: "Status", value: <ConnectionStatusBadge status={shown.status} /> },
                { label: "Messages per minute", value: <Rate perSecond={rate} /> },
                { label: "Received", value: formatCount(shown.stats?.messagesReceived ?? 0) },
                { label: "Last message", value: <Time at={shown.stats?.lastMessage} /> },
                { label: "Surfaces", value: <Surfaces lookups={shown.surfaces} /> },
              ]}
            />
            {shown.statusReason !== null && <Notice kind="warn" title={shown.statusReason} />}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function Surfaces({ lookups }: { lookups: readonly string[] }) {
  if (lookups.length === 0) {
    return <>none</>;
  }
  return (
    <>
      {lookups.map((lookup, index) => (
        <span key={lookup}>
          {index > 0 && ", "}
          <a href={buildHref("surfaces", [lookup])}>{lookup}</a>
        </span>
      ))}
    </>
  );
}
