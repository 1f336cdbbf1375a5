import { useState } from "preact/hooks";
import type { WarmQuery } from "@/api/queries.ts";
import { go, href, type Route } from "@/router/route.ts";
import { type Extent, warmAsk } from "./ask.ts";
import { ExtentInputs } from "./ExtentInputs.tsx";
import { ParameterInputs } from "./ParameterInputs.tsx";
import { argumentsOf } from "./parameters.ts";
import { RunForm } from "./RunForm.tsx";
import { useRun } from "./useRun.ts";

/** An approved query, run with its declared parameters; what was entered stands in the address. */
export function WarmRun({ query, route }: { query: WarmQuery; route: Route }) {
  const [values, setValues] = useState<ReadonlyMap<string, string>>(() => valuesIn(query, route.query));
  const [extent, setExtent] = useState<Extent>(() => extentIn(route.query));
  const run = useRun();
  const given = argumentsOf(query.parameters, values);
  const ask = warmAsk(query.lookup, given, extent);
  const start = () => {
    go(href("queries", [query.lookup], Object.fromEntries([...given, ...Object.entries(extent)])), "replace");
    run.start(ask);
  };
  return (
    <RunForm run={run} ask={ask} onRun={start} columns={query.schema?.columns ?? []}>
      <ParameterInputs parameters={query.parameters} values={values} onChange={setValues} error={run.error} />
      <ExtentInputs extent={extent} onChange={setExtent} error={run.error} />
    </RunForm>
  );
}

/** Reads what an address says of the extent. */
export function extentIn(query: URLSearchParams): Extent {
  return { timeRange: query.get("timeRange") ?? "", limit: query.get("limit") ?? "" };
}

function valuesIn(query: WarmQuery, address: URLSearchParams): ReadonlyMap<string, string> {
  const named = query.parameters.map(({ name }) => [name, address.get(`p.${name}`)] as const);
  return new Map(named.filter((pair): pair is [string, string] => pair[1] !== null));
}
