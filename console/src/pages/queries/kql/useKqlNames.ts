import { fetchConnectionItems } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { toFieldName } from "@/components/signals.ts";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";
import { type KqlNames, NO_NAMES } from "./completion.ts";

/** Returns the names of the workspace for completion; none without the right to read them, or after an error. */
export function useKqlNames(): KqlNames {
  const readable = useHasRights("Workspace.Catalog.Read");
  const { data } = useResource(
    async (signal) => (readable ? toNames(await fetchConnectionItems(api, signal)) : NO_NAMES),
    [readable],
  );
  return data ?? NO_NAMES;
}

type Connections = Awaited<ReturnType<typeof fetchConnectionItems>>;

/** Returns the signals and lookups of connections, each path once. */
export function toNames(connections: readonly Pick<Connections[number], "lookup" | "signals">[]): KqlNames {
  const signals = connections.flatMap((each) => each.signals.map((signal) => ({ signal, lookup: each.lookup })));
  const notes = new Map(
    signals.map(({ signal, lookup }) => [
      toFieldName(signal.pointer),
      ["signal", signal.unit, lookup].filter(Boolean).join(", "),
    ]),
  );
  return {
    signals: [...notes].map(([path, note]) => ({ path, note })),
    parameters: [],
    connections: connections.map(({ lookup }) => lookup),
  };
}
