// Alerts that need attention: firing and pending ones.
import { type Alert, fetchAlerts } from "@/api/alerts.ts";
import type { Client } from "@/api/client.ts";

export const MAX_SHOWN = 1000;

/** Firing and pending alerts; `more` if there are more firing alerts than a page holds. */
export interface ActiveAlerts {
  alerts: Alert[];
  firing: number;
  more: boolean;
}

const SEVERITIES = ["critical", "warning", "info"];

/** Returns the firing alerts, then the pending ones; within each group the most severe and the newest first. */
export async function fetchActiveAlerts(api: Client, signal: AbortSignal): Promise<ActiveAlerts> {
  const [firing, pending] = await Promise.all([
    fetchAlerts(api, { state: "firing", limit: MAX_SHOWN }, signal),
    fetchAlerts(api, { state: "pending", limit: MAX_SHOWN }, signal),
  ]);
  return {
    alerts: [...sortBySeverity(firing.alerts), ...sortBySeverity(pending.alerts)],
    firing: firing.alerts.length,
    more: firing.cursor !== undefined,
  };
}

/** Sorts alerts by severity; alerts of the same severity keep their order. */
export function sortBySeverity(alerts: readonly Alert[]): Alert[] {
  return [...alerts].sort((left, right) => SEVERITIES.indexOf(left.severity) - SEVERITIES.indexOf(right.severity));
}

/** Formats labels: `DeviceId: pump-1, line: –`. */
export function formatLabels(labels: Readonly<Record<string, string | null>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}: ${value ?? "–"}`)
    .join(", ");
}

const changes = new EventTarget();

/** Tells the badge that an alert changed. */
export function announceAlertChange(): void {
  changes.dispatchEvent(new Event("change"));
}

/** Calls back when an alert changed. Returns the function that ends it. */
export function subscribeToAlertChanges(listener: () => void): () => void {
  changes.addEventListener("change", listener);
  return () => changes.removeEventListener("change", listener);
}
