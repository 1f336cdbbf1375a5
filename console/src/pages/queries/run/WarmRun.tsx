import { useState } from "preact/hooks";
import type { WarmQuery } from "@/api/queries.ts";
import { buildHref, navigate, type Route } from "@/router/route.ts";
import { ExtentInputs } from "./ExtentInputs.tsx";
import { ParameterInputs } from "./ParameterInputs.tsx";
import { buildArguments } from "./parameters.ts";
import { buildWarmCall, type Extent } from "./queryCall.ts";
import { RunForm } from "./RunForm.tsx";
import { useRun } from "./useRun.ts";

/** A form to run an approved query; the address contains its inputs. */
export function WarmRun({ query, route }: { query: WarmQuery; route: Route }) {
  const [values, setValues] = useState<ReadonlyMap<string, string>>(() => parseValues(query, route.query));
  const [extent, setExtent] = useState<Extent>(() => parseExtent(route.query));
  const run = useRun();
  const given = buildArguments(query.parameters, values);
  const ask = buildWarmCall(query.lookup, given, extent);
  const start = () => {
    navigate(
      buildHref("queries", [query.lookup], Object.fromEntries([...given, ...Object.entries(extent)])),
      "replace",
    );
    run.start(ask);
  };
  return (
    <RunForm run={run} ask={ask} onRun={start} columns={query.schema?.columns ?? []}>
      <ParameterInputs parameters={query.parameters} values={values} onChange={setValues} error={run.error} />
      <ExtentInputs extent={extent} onChange={setExtent} error={run.error} />
    </RunForm>
  );
}

/** Parses time range and limit of an address. */
export function parseExtent(query: URLSearchParams): Extent {
  return { timeRange: query.get("timeRange") ?? "", limit: query.get("limit") ?? "" };
}

function parseValues(query: WarmQuery, address: URLSearchParams): ReadonlyMap<string, string> {
  const named = query.parameters.map(({ name }) => [name, address.get(`p.${name}`)] as const);
  return new Map(named.filter((pair): pair is [string, string] => pair[1] !== null));
}
