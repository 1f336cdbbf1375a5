import { checkLookup, checkName, splitLines } from "@/administration/fieldErrors.ts";
import type { FormRules } from "@/administration/useItemForm.ts";
import type { ConnectionType } from "@/api/catalog.ts";
import { type ConnectionItem, connectionPath, type Source, type TimestampFormat } from "@/api/connections.ts";
import { readObject, writeObject } from "@/proof/jsonText.ts";
import { checkSignals, type SignalDraft, toSignal, toSignalDraft } from "./signalDrafts.ts";

/** The form of a connection; the properties of `source` and the simulator as text. */
export interface ConnectionDraft {
  lookup: string;
  name: string;
  type: ConnectionType;
  enabled: boolean;
  /** One pattern a line. */
  devices: string;
  timestampPointer: string;
  timestampFormat: TimestampFormat;
  deviceIdPointer: string;
  messageIdPointer: string;
  eventHub: string;
  consumerGroup: string;
  /** JSON. */
  simulator: string;
  signals: readonly SignalDraft[];
}

const DEFAULT_GROUP = "$Default";
const POINTER = /^(\/([^/~]|~[01])*)*$/;
const EXAMPLE = {
  intervalMs: 1000,
  devices: 1,
  variables: [{ name: "temperature", kind: "sine", min: 4, max: 9, periodSec: 600, noise: 0.1 }],
};

export const NEW_CONNECTION: ConnectionDraft = {
  lookup: "",
  name: "",
  type: "CLOUD_IOT_HUB",
  enabled: true,
  devices: "",
  timestampPointer: "/timestamp",
  timestampFormat: "rfc3339",
  deviceIdPointer: "/deviceId",
  messageIdPointer: "/messageId",
  eventHub: "",
  consumerGroup: DEFAULT_GROUP,
  simulator: writeObject(EXAMPLE),
  signals: [],
};

export const CONNECTION_RULES: FormRules<ConnectionItem, ConnectionDraft> = {
  noun: "connection",
  labels: {
    lookup: "ID",
    name: "Name",
    type: "Type",
    enabled: "Enabled",
    devices: "Devices",
    timestampPointer: "Time",
    timestampFormat: "Format of the time",
    deviceIdPointer: "Device ID",
    messageIdPointer: "Message ID",
    eventHub: "Event Hub",
    consumerGroup: "Consumer group",
    simulator: "Simulator",
    signals: "Signals",
  },
  path: ({ lookup }) => connectionPath(lookup),
  toDraft: ({ lookup, name, type, enabled, source, simulator, signals }) => ({
    lookup,
    name,
    type,
    enabled,
    devices: source.devices.join("\n"),
    timestampPointer: source.timestampPointer,
    timestampFormat: source.timestampFormat,
    deviceIdPointer: source.deviceIdPointer,
    messageIdPointer: source.messageIdPointer,
    eventHub: source.eventHub ?? "",
    consumerGroup: source.consumerGroup,
    simulator: writeObject(simulator ?? EXAMPLE),
    signals: signals.map(toSignalDraft),
  }),
  toBody: (draft) => ({
    name: draft.name,
    type: draft.type,
    enabled: draft.enabled,
    source: toSource(draft),
    simulator: draft.type === "SIMULATOR" ? (readObject(draft.simulator).value ?? null) : null,
    signals: draft.signals.map(toSignal),
  }),
  check: (draft, isNew) => ({
    lookup: isNew ? checkLookup(draft.lookup) : undefined,
    name: checkName(draft.name, "a name"),
    ...checkSource(draft),
    simulator: draft.type === "SIMULATOR" ? readObject(draft.simulator).problem : undefined,
    ...checkSignals(draft.signals),
  }),
  keyField: "lookup",
  canRecreate: true,
};

/** Returns the source; only an Event Hub has a hub and a consumer group. */
function toSource(draft: ConnectionDraft): Source {
  const hub = draft.type === "CLOUD_EVENT_HUB" ? draft.eventHub.trim() : "";
  return {
    devices: splitLines(draft.devices),
    timestampPointer: draft.timestampPointer,
    deviceIdPointer: draft.deviceIdPointer,
    messageIdPointer: draft.messageIdPointer,
    timestampFormat: draft.timestampFormat,
    eventHub: hub === "" ? null : hub,
    consumerGroup: hub === "" ? DEFAULT_GROUP : draft.consumerGroup.trim() || DEFAULT_GROUP,
  };
}

function checkSource(draft: ConnectionDraft): Record<string, string | undefined> {
  if (draft.type === "SIMULATOR") {
    return {};
  }
  return {
    "source.timestampPointer": checkPointer(draft.timestampPointer),
    "source.deviceIdPointer": checkPointer(draft.deviceIdPointer),
    "source.messageIdPointer": checkPointer(draft.messageIdPointer),
  };
}

function checkPointer(text: string): string | undefined {
  return POINTER.test(text) ? undefined : "must be a JSON pointer, such as /header/time";
}
