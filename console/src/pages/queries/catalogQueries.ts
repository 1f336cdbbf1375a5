import { parseExactDefinitions } from "@/api/exactNumbers.ts";
import { api, readJson } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";

/** Returns every warm query, with drafts and exact defaults; needs Workspace.Catalog.Read. */
export async function fetchWarmQueries(signal?: AbortSignal): Promise<WarmQuery[]> {
  const reply = await api.fetch("GET", "/oi-api/warm-queries", undefined, signal ? { signal } : {});
  return (await readJson<{ warmQueries: WarmQuery[] }>(reply, true, parseExactDefinitions)).warmQueries;
}

/** Returns one query, undefined for an unknown lookup; the API has no route for a single definition. */
export async function fetchWarmQuery(lookup: string, signal?: AbortSignal): Promise<WarmQuery | undefined> {
  return (await fetchWarmQueries(signal)).find((query) => query.lookup === lookup);
}

/** Returns the query that an address names by its lookup or its API path; undefined if there is none. */
export function findAddressed(queries: readonly WarmQuery[], segments: readonly string[]): WarmQuery | undefined {
  const path = segments.join("/");
  return (
    queries.find((query) => query.lookup === path) ??
    queries.find((query) => query.apiPath === path) ??
    queries.find((query) => query.lookup === segments[0])
  );
}

export type StateFilter = "" | "approved" | "draft";

/** Filters of a list. */
export interface Filter {
  text: string;
  state: StateFilter;
  surface: string;
}

/** Returns the queries whose name, lookup, path, description or KQL contain every word of the text. */
export function filterQueries(queries: readonly WarmQuery[], filter: Filter): WarmQuery[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  return queries.filter((query) => {
    const text = [query.name, query.lookup, query.apiPath, query.description, query.kql].join("\n").toLowerCase();
    const state = query.approval ? "approved" : "draft";
    return (
      words.every((word) => text.includes(word)) &&
      (filter.state === "" || filter.state === state) &&
      (filter.surface === "" || filter.surface === query.surface)
    );
  });
}
