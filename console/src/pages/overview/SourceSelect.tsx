import { api } from "@/api/index.ts";
import { fetchConnections, fetchSurfaces } from "@/api/plant.ts";
import { Select } from "@/components/Field.tsx";
import { useResource } from "@/components/useResource.ts";
import type { Scope } from "@/live/live.ts";
import { useHasRights } from "@/session/hooks.ts";
import css from "./Live.module.css";

interface Props {
  scope: Scope;
  onChange: (scope: Scope) => void;
}

interface Item {
  id: string;
  name: string;
}

/** A choice of the stream's source: all connections, a surface, or one connection. */
export function SourceSelect({ scope, onChange }: Props) {
  const readable = useHasRights("Workspace.Catalog.Read");
  const surfaces = useResource<Item[]>(async (signal) => (readable ? fetchSurfaces(api, signal) : []), [readable]);
  const connections = useResource<Item[]>(
    async (signal) => (readable ? fetchConnections(api, signal) : []),
    [readable],
  );
  return (
    <div class={css.source}>
      <Select
        label="Source"
        hideLabel
        value={formatScope(scope)}
        options={listSources(surfaces.data ?? [], connections.data ?? [], scope)}
        onChange={(chosen) => onChange(parseScope(chosen))}
      />
    </div>
  );
}

/** Lists the sources; the current one is among them even if the catalog does not contain it. */
export function listSources(
  surfaces: readonly Item[],
  connections: readonly Item[],
  scope: Scope,
): { value: string; label: string }[] {
  const options = [
    { value: "", label: "All connections" },
    ...surfaces.map(({ id, name }) => ({ value: `surface ${id}`, label: `Surface: ${name}` })),
    ...connections.map(({ id, name }) => ({ value: `connection ${id}`, label: `Connection: ${name}` })),
  ];
  const value = formatScope(scope);
  const label = scope.connection ? `Connection: ${scope.connection}` : `Surface: ${scope.surface}`;
  return options.some((option) => option.value === value) ? options : [...options, { value, label }];
}

function formatScope({ connection, surface }: Scope): string {
  return connection ? `connection ${connection}` : surface ? `surface ${surface}` : "";
}

/** Parses the value of an option. */
export function parseScope(value: string): Scope {
  const [kind, ...rest] = value.split(" ");
  const id = rest.join(" ");
  return { connection: kind === "connection" ? id : "", surface: kind === "surface" ? id : "" };
}
