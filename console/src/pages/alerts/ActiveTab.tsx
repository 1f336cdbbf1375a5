import { useEffect } from "preact/hooks";
import { api } from "@/api/index.ts";
import { Loaded } from "@/components/Loaded.tsx";
import { Notice } from "@/components/Notice.tsx";
import { usePolling } from "@/components/usePolling.ts";
import { formatCount } from "@/format.ts";
import { Panel } from "@/shell/Page.tsx";
import { AlertTable } from "./AlertTable.tsx";
import { announceAlertChange, fetchActiveAlerts } from "./activeAlerts.ts";

const POLL_MS = 10_000;

/** The firing and pending alerts, refreshed while the page is open. */
export function ActiveTab() {
  const active = usePolling(
    (signal) => fetchActiveAlerts(api, signal),
    () => POLL_MS,
    [],
  );
  const firing = active.data?.firing;
  useEffect(() => {
    if (firing !== undefined) {
      announceAlertChange();
    }
  }, [firing]);
  return (
    <Loaded resource={active} rows={5}>
      {({ alerts, more }) => (
        <Panel>
          {more && <Notice kind="warn">Only {formatCount(alerts.length)} of the active alerts are shown.</Notice>}
          <AlertTable
            label="Active alerts"
            alerts={alerts}
            empty={{ title: "No active alerts", text: "An alert is active while the condition of its rule holds." }}
            onChanged={active.reload}
          />
        </Panel>
      )}
    </Loaded>
  );
}
