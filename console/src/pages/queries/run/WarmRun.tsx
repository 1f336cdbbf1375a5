import { useMemo, useRef, useState } from "preact/hooks";
import type { Signal } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { type SurfaceItem, surfacePath } from "@/api/surfaces.ts";
import { Notice } from "@/components/Notice.tsx";
import { useSignals } from "@/components/signals.ts";
import { useResource } from "@/components/useResource.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { navigate, parseHash, type Route } from "@/router/route.ts";
import { ExtentInputs } from "./ExtentInputs.tsx";
import { ParameterInputs } from "./ParameterInputs.tsx";
import { buildArguments } from "./parameters.ts";
import { buildRunHref, buildWarmCall, EXTENT_NAMES, type Extent } from "./queryCall.ts";
import { RunForm } from "./RunForm.tsx";
import { useRun } from "./useRun.ts";

interface Props {
  query: WarmQuery;
  route: Route;
}

/** A form to run an approved query; the address contains its inputs. A link with other inputs begins a new form. */
export function WarmRun({ query, route }: Props) {
  const address = route.query.toString();
  // The inputs in the address as the form began with them, or wrote them at its last run.
  const own = useRef(address);
  const links = useRef(0);
  if (own.current !== address) {
    own.current = address;
    links.current += 1;
  }
  const keepForm = () => {
    own.current = parseHash(window.location.hash).query.toString();
  };
  return <WarmForm key={links.current} query={query} route={route} onWritten={keepForm} />;
}

/** @param onWritten called after the form wrote its inputs into the address */
function WarmForm({ query, route, onWritten }: Props & { onWritten: () => void }) {
  const [values, setValues] = useState<ReadonlyMap<string, string>>(() => parseValues(query, route.query));
  const [extent, setExtent] = useState<Extent>(() => parseExtent(route.query));
  const run = useRun();
  const { connections, signals } = useSurface(query.surface);
  const ask = buildWarmCall(query.lookup, buildArguments(query.parameters, values), extent);
  const start = () => {
    navigate(buildRunHref(query.lookup, ask), "replace");
    onWritten();
    run.start(ask);
  };
  const unknown = findUnknownInputs(query, route.query);
  return (
    <>
      <IgnoredInputs title="The address contains inputs that the query does not have" names={unknown} />
      <RunForm run={run} ask={ask} onRun={start} columns={query.schema?.columns ?? []} signals={signals}>
        <ParameterInputs
          parameters={query.parameters}
          values={values}
          onChange={setValues}
          error={run.error}
          connections={connections}
          kql={query.kql}
        />
        <ExtentInputs extent={extent} onChange={setExtent} error={run.error} />
      </RunForm>
    </>
  );
}

/** The names of inputs in the address that have no effect; the title says why. */
export function IgnoredInputs({ title, names }: { title: string; names: readonly string[] }) {
  return names.length === 0 ? null : (
    <Notice kind="warn" title={title}>
      They are ignored: <VisibleText text={names.join(", ")} />
    </Notice>
  );
}

const MAX_CONNECTIONS = 20;

const NO_CONNECTIONS: readonly string[] = [];

/** Returns a surface's connections with their signals; of a large surface only the signals of the first ones. */
export function useSurface(lookup: string): { connections: readonly string[]; signals: readonly Signal[] } {
  const { data } = useResource((signal) => api.get<SurfaceItem>(surfacePath(lookup), { signal }), [lookup]);
  const connections = data?.connections ?? NO_CONNECTIONS;
  const signals = useSignals(connections.slice(0, MAX_CONNECTIONS));
  return { connections, signals: useMemo(() => [...signals.values()].flat(), [signals]) };
}

/** Parses time range and limit of an address. */
export function parseExtent(query: URLSearchParams): Extent {
  const read = (name: string) => query.get(name) ?? "";
  return { timeRange: read("timeRange"), from: read("from"), to: read("to"), limit: read("limit") };
}

/** Returns the names in an address that are neither parameters of the query nor parts of its time range and limit. */
export function findUnknownInputs({ parameters }: Pick<WarmQuery, "parameters">, address: URLSearchParams): string[] {
  const known = new Set<string>([...EXTENT_NAMES, ...parameters.map(({ name }) => `p.${name}`)]);
  return [...new Set(address.keys())].filter((name) => !known.has(name));
}

function parseValues(query: WarmQuery, address: URLSearchParams): ReadonlyMap<string, string> {
  const named = query.parameters.map(({ name }) => [name, address.get(`p.${name}`)] as const);
  return new Map(named.filter((pair): pair is [string, string] => pair[1] !== null));
}
