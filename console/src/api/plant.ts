import type { Connection, Surface } from "./catalog.ts";
import type { Client } from "./client.ts";

interface Page<Node> {
  nodes: Node[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

const CONNECTIONS = `query Connections($after: String) {
  connections(first: 200, after: $after) {
    nodes { id name type status surfaces { id name } stats { messagesReceived lastMessage } }
    pageInfo { hasNextPage endCursor }
  }
}`;

const SURFACES = `query Surfaces($after: String) {
  surfaces(first: 200, after: $after) {
    nodes { id name description connections { id name } }
    pageInfo { hasNextPage endCursor }
  }
}`;

/** Returns every connection, ordered by lookup; needs Workspace.Catalog.Read. */
export function fetchConnections(api: Client, signal?: AbortSignal): Promise<Connection[]> {
  return fetchAllPages(async (after) => {
    return (await api.graphql<{ connections: Page<Connection> }>(CONNECTIONS, { after }, signal)).connections;
  });
}

/** Returns every surface, ordered by lookup; needs Workspace.Catalog.Read. */
export function fetchSurfaces(api: Client, signal?: AbortSignal): Promise<Surface[]> {
  return fetchAllPages(
    async (after) => (await api.graphql<{ surfaces: Page<Surface> }>(SURFACES, { after }, signal)).surfaces,
  );
}

async function fetchAllPages<Node>(load: (after: string | null) => Promise<Page<Node>>): Promise<Node[]> {
  const nodes: Node[] = [];
  let after: string | null = null;
  for (;;) {
    const page = await load(after);
    nodes.push(...page.nodes);
    if (!page.pageInfo.hasNextPage) {
      return nodes;
    }
    after = page.pageInfo.endCursor;
  }
}
