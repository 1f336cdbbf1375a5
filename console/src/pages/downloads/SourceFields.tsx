import { useLayoutEffect } from "preact/hooks";
import type { Connection, Surface } from "@/api/catalog.ts";
import { api } from "@/api/index.ts";
import { fetchConnections, fetchSurfaces } from "@/api/plant.ts";
import { Field, Select } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";
import type { Source } from "./calls.ts";

const KINDS: readonly { value: Source["kind"]; label: string }[] = [
  { value: "connection", label: "One connection" },
  { value: "surface", label: "All connections of a surface" },
  { value: "within", label: "One connection of a surface" },
];

interface Props {
  source: Source;
  onChange: (source: Source) => void;
}

/** Inputs for the source: from the catalog, or by lookup if the token cannot read it. */
export function SourceFields({ source, onChange }: Props) {
  const readable = useHasRights("Workspace.Catalog.Read");
  const catalog = useResource(async (signal) => (readable ? await fetchCatalog(signal) : undefined), [readable]);
  const change = (part: Partial<Source>) => onChange({ ...source, ...part });
  const surface = catalog.data?.surfaces.find((each) => each.id === source.surface);
  const offered = (source.kind === "within" ? surface?.connections : catalog.data?.connections) ?? [];
  const first = offered[0]?.id;
  useLayoutEffect(() => {
    if (catalog.data && first !== undefined && !offered.some((each) => each.id === source.connection)) {
      change({ connection: first });
    }
  }, [catalog.data, first, source.kind, source.surface]);
  useLayoutEffect(() => {
    const known = catalog.data?.surfaces[0];
    if (known && source.kind !== "connection" && !surface) {
      change({ surface: known.id });
    }
  }, [catalog.data, source.kind]);
  return (
    <>
      <Select label="Data" value={source.kind} options={KINDS} onChange={(kind) => change({ kind })} />
      {source.kind !== "connection" && (
        <Choice
          label="Surface"
          value={source.surface}
          among={readable ? (catalog.data?.surfaces ?? []) : undefined}
          onChange={(value) => change({ surface: value })}
        />
      )}
      {source.kind !== "surface" && (
        <Choice
          label="Connection"
          value={source.connection}
          among={readable ? offered : undefined}
          onChange={(value) => change({ connection: value })}
        />
      )}
      {catalog.error !== undefined && <ErrorNotice error={catalog.error} onRetry={catalog.reload} />}
    </>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  /** Undefined if the token cannot read the catalog. */
  among: readonly { id: string; name: string }[] | undefined;
  onChange: (value: string) => void;
}

function Choice({ label, value, among, onChange }: ChoiceProps) {
  if (among === undefined) {
    return <Field label={label} value={value} hint="Its ID (lookup)" mono onInput={(text) => onChange(text.trim())} />;
  }
  const options = among.map(({ id, name }) => ({ value: id, label: name === id ? id : `${name} (${id})` }));
  return <Select label={label} value={value} options={options} onChange={onChange} />;
}

async function fetchCatalog(signal: AbortSignal): Promise<{ connections: Connection[]; surfaces: Surface[] }> {
  const [first, second] = await Promise.all([fetchConnections(api, signal), fetchSurfaces(api, signal)]);
  return { connections: first, surfaces: second };
}
