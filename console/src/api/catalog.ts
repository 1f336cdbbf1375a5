import type { Client } from "./client.ts";

export type ConnectionStatus = "CONNECTED" | "CONNECTING" | "DISCONNECTED" | "ERROR";
export type ConnectionType = "CLOUD_IOT_HUB" | "CLOUD_EVENT_HUB" | "SIMULATOR";

/** A source of telemetry; its id is its lookup. */
export interface Connection {
  id: string;
  name: string;
  type: ConnectionType;
  status: ConnectionStatus;
  surfaces: { id: string; name: string }[];
  stats: { messagesReceived: number; lastMessage: string | null } | null;
}

/** A named group of connections with the queries over them. */
export interface Surface {
  id: string;
  name: string;
  description: string | null;
  connections: { id: string; name: string }[];
}

/** The workspace, with counts of its resources. */
export interface Workspace {
  id: string;
  name: string;
  description: string | null;
  stats: { connectionCount: number; surfaceCount: number; queryCount: number };
}

const WORKSPACE = `query Workspace {
  workspace { id name description stats { connectionCount surfaceCount queryCount } }
}`;

/** Returns the workspace; needs Workspace.Catalog.Read. */
export async function fetchWorkspace(api: Client, signal?: AbortSignal): Promise<Workspace> {
  return (await api.graphql<{ workspace: Workspace }>(WORKSPACE, {}, signal)).workspace;
}
