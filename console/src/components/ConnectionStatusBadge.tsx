import type { ConnectionStatus, ConnectionType } from "@/api/catalog.ts";
import { Status, type Tone } from "./Badge.tsx";

const TONES: Record<ConnectionStatus, Tone> = {
  CONNECTED: "good",
  CONNECTING: "accent",
  DISCONNECTED: "neutral",
  ERROR: "bad",
};

/** Names of the types of connections. */
export const CONNECTION_TYPES: Record<ConnectionType, string> = {
  CLOUD_IOT_HUB: "IoT Hub",
  CLOUD_EVENT_HUB: "Event Hub",
  SIMULATOR: "Simulator",
};

/** The status of a connection. */
export function ConnectionStatusBadge({ status }: { status: ConnectionStatus }) {
  return <Status tone={TONES[status]}>{status.toLowerCase()}</Status>;
}
