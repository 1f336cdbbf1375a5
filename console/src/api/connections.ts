import type { ConnectionStatus, ConnectionType } from "./catalog.ts";
import { type Client, formatPath } from "./client.ts";
import { fetchAllItems, type ItemChange, type StoredItem } from "./items.ts";

export type TimestampFormat = "rfc3339" | "epochSeconds" | "epochMilliseconds";

/** The events of a connection, and the places of their fields. */
export interface Source {
  devices: string[];
  timestampPointer: string;
  deviceIdPointer: string;
  messageIdPointer: string;
  timestampFormat: TimestampFormat;
  eventHub: string | null;
  consumerGroup: string;
}

export type SignalType = "real" | "long" | "bool" | "string" | "datetime";

/** A field of the payloads: position, type, unit and expected range. */
export interface Signal {
  name: string;
  /** JSON pointer in the payload. */
  pointer: string;
  type: SignalType;
  unit: string | null;
  description: string | null;
  min: number | null;
  max: number | null;
}

/** A field that recent messages contain, with its lowest and highest value. */
export interface ProposedSignal {
  name: string;
  pointer: string;
  type: SignalType;
  /** Fraction of the messages that contain it, 0 to 1. */
  share: number;
  min: number | null;
  max: number | null;
}

/** The fields of recent messages. */
export interface SignalProposal {
  messages: number;
  signals: ProposedSignal[];
}

/** The definition and state of a connection. */
export interface ConnectionItem extends StoredItem, ItemChange {
  lookup: string;
  name: string;
  type: ConnectionType;
  enabled: boolean;
  source: Source;
  simulator: Record<string, unknown> | null;
  signals: Signal[];
  status: ConnectionStatus;
  statusReason: string | null;
  stats: { messagesReceived: number; lastMessage: string | null } | null;
  /** Lookups of the surfaces that contain it. */
  surfaces: string[];
}

/** Returns all connections, sorted by lookup; needs Workspace.Catalog.Read. */
export function fetchConnectionItems(api: Client, signal?: AbortSignal): Promise<ConnectionItem[]> {
  return fetchAllItems<ConnectionItem>(api, "/oi-api/connections", "connections", signal);
}

export function connectionPath(lookup: string): string {
  return formatPath`/oi-api/connections/${lookup}`;
}

/** Returns the declared signals of a connection; needs Workspace.Catalog.Read. */
export async function fetchSignals(api: Client, lookup: string, signal?: AbortSignal): Promise<Signal[]> {
  return (await api.get<{ signals: Signal[] }>(`${connectionPath(lookup)}/signals`, signal ? { signal } : {})).signals;
}

/** Proposes signals from recent messages and stores nothing; needs Workspace.Catalog.Manage. */
export function proposeSignals(api: Client, lookup: string, signal: AbortSignal): Promise<SignalProposal> {
  return api.post<SignalProposal>(`${connectionPath(lookup)}/signals/infer`, undefined, { signal });
}
