import { api } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";

/** Gives every warm query, drafts too; needs Workspace.Catalog.Read. */
export async function fetchWarmQueries(signal?: AbortSignal): Promise<WarmQuery[]> {
  const options = signal ? { signal } : {};
  return (await api.get<{ warmQueries: WarmQuery[] }>("/oi-api/warm-queries", options)).warmQueries;
}

/** Gives one of them, undefined where there is none of this lookup; the service has no address for a definition alone. */
export async function fetchWarmQuery(lookup: string, signal?: AbortSignal): Promise<WarmQuery | undefined> {
  return (await fetchWarmQueries(signal)).find((query) => query.lookup === lookup);
}

export type StateFilter = "" | "approved" | "draft";

/** What a list is cut down to. */
export interface Filter {
  text: string;
  state: StateFilter;
  surface: string;
}

/** Keeps the queries that fit: each word of the text stands somewhere in name, lookup, path, description or KQL. */
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
