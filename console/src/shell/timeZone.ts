// The time zone in which times are shown and entered: the reader's own, or UTC.
import { useLayoutEffect, useState } from "preact/hooks";

/** `local` is the zone of the reader's machine. */
export type Zone = "local" | "utc";

/** Pages with one choice of the zone: the audit log begins in UTC, all others in the reader's zone. */
export type ZoneArea = "plant" | "audit";

const NAMES: Record<ZoneArea, string> = {
  plant: "workspace-console-zone",
  audit: "workspace-console-audit-zone",
};
const DEFAULTS: Record<ZoneArea, Zone> = { plant: "local", audit: "utc" };
const listeners = new Set<() => void>();
/** Choices of a browser that blocks storage. */
const overrides = new Map<ZoneArea, Zone>();
let area: ZoneArea = "plant";

/** Returns the zone of the current page. */
export function getZone(): Zone {
  return recallZone(area) ?? DEFAULTS[area];
}

/** Sets the area of the current page; to be called before the page is rendered. */
export function setZoneArea(next: ZoneArea): void {
  area = next;
}

/** Switches the current area between the reader's zone and UTC. */
export function toggleZone(): void {
  const wanted: Zone = getZone() === "utc" ? "local" : "utc";
  overrides.set(area, wanted);
  try {
    localStorage.setItem(NAMES[area], wanted);
  } catch {
    // The choice lasts until the page is left.
  }
  callListeners();
}

// All tabs share the choice; without an update, only the parts that are drawn next would show the new zone.
window.addEventListener("storage", ({ key }) => {
  // Without a key, the whole storage was cleared.
  if (key === NAMES[area] || key === null) {
    callListeners();
  }
});

function callListeners(): void {
  for (const listener of listeners) {
    listener();
  }
}

export function subscribeToZone(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the zone of the current page, and rerenders the component after a switch. */
export function useZone(): Zone {
  const [, redraw] = useState(0);
  // Before the browser paints, so that no switch is missed.
  useLayoutEffect(() => subscribeToZone(() => redraw((turn) => turn + 1)), []);
  return getZone();
}

/** Names of UTC as the zone of a machine. */
const UTC_NAMES: readonly string[] = ["UTC", "Etc/UTC"];

/** Returns the name of a zone with its offset now: "Europe/Berlin (UTC+1)", or "UTC". */
export function describeZone(zone: Zone, now: Date): string {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (zone === "utc" || UTC_NAMES.includes(timeZone)) {
    return "UTC";
  }
  return `${timeZone} (${describeOffset(zone, now)})`;
}

/** Returns the offset of a zone at a time: "UTC+1", or "UTC". */
export function describeOffset(zone: Zone, at: Date): string {
  return zone === "utc" ? "UTC" : formatOffset(-at.getTimezoneOffset());
}

/** Formats minutes ahead of UTC: "UTC+1", "UTC-3:30". */
export function formatOffset(minutes: number): string {
  const size = Math.abs(minutes);
  const rest = size % 60 === 0 ? "" : `:${String(size % 60).padStart(2, "0")}`;
  return size === 0 ? "UTC" : `UTC${minutes < 0 ? "-" : "+"}${Math.floor(size / 60)}${rest}`;
}

function recallZone(of: ZoneArea): Zone | undefined {
  try {
    const found = localStorage.getItem(NAMES[of]);
    return found === "utc" || found === "local" ? found : overrides.get(of);
  } catch {
    return overrides.get(of);
  }
}
