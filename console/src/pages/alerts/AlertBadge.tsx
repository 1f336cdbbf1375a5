import { useLayoutEffect } from "preact/hooks";
import { fetchAlerts } from "@/api/alerts.ts";
import { api } from "@/api/index.ts";
import { isPermanent } from "@/api/problem.ts";
import { NavCount } from "@/components/NavCount.tsx";
import { usePolling } from "@/components/usePolling.ts";
import { formatCount } from "@/format.ts";
import { subscribeToAlertChanges } from "./activeAlerts.ts";

const POLL_MS = 30_000;
const AFTER_REJECTION_MS = 600_000;
const MAX_COUNTED = 100;

/** The number of firing alerts, in the navigation. */
export function AlertBadge() {
  const { data, reload } = usePolling(
    (signal) => fetchAlerts(api, { state: "firing", limit: MAX_COUNTED }, signal),
    ({ error }) => (isPermanent(error) ? AFTER_REJECTION_MS : POLL_MS),
    [],
  );
  useLayoutEffect(() => subscribeToAlertChanges(reload), [reload]);
  if (!data || data.alerts.length === 0) {
    return null;
  }
  return <NavCount text={`${formatCount(data.alerts.length)}${data.cursor === undefined ? "" : "+"}`} of="firing" />;
}
