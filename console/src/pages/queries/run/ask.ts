import { api, jsonOf, whole } from "@/api/index.ts";
import type { QueryAnswer } from "@/api/queries.ts";
import { saveFile } from "@/components/saveFile.ts";
import { exactly } from "./exact.ts";

/** How much of an answer is wanted, as it stands in the inputs. */
export interface Extent {
  timeRange: string;
  limit: string;
}

/** A call that runs a query: an approved one by its address, or a text of one's own. */
export interface Ask {
  /** What files of its rows are called. */
  name: string;
  method: "GET" | "POST";
  path: string;
  /** Query parameters in order, GET only. */
  query: readonly (readonly [name: string, value: string])[];
  /** POST only. */
  body?: { query: string; timeRange?: string; limit: number };
}

export const DEFAULT_LIMIT = "1000";
export const MOST_ROWS = 10_000;

/** What to do about an answer of this many rows that is not whole. */
export function moreOf(rows: number): string {
  return rows >= MOST_ROWS
    ? "No answer holds more. Narrow the query: a shorter time range, a filter, or sums."
    : `The answer ends at “Most rows”. Raise it, up to ${MOST_ROWS.toLocaleString("en")}, or ask for a shorter time range or for sums.`;
}

export type Form = "csv" | "parquet";
const MEDIA: Record<Form, string> = { csv: "text/csv", parquet: "application/vnd.apache.parquet" };

/** Gives the call of an approved query; `lookup` may be an API path. */
export function warmAsk(lookup: string, parameters: readonly (readonly [string, string])[], extent: Extent): Ask {
  const path = `/oi-api/warm-queries/${lookup.split("/").map(encodeURIComponent).join("/")}`;
  const query = [...parameters];
  if (extent.timeRange !== "") {
    query.push(["timeRange", extent.timeRange]);
  }
  if (extent.limit !== "") {
    query.push(["limit", extent.limit]);
  }
  return { name: lookup.replaceAll("/", "-"), method: "GET", path, query };
}

/** Gives the call of a caller's own text. */
export function adHocAsk(kql: string, extent: Extent): Ask {
  const timeRange = extent.timeRange === "" ? {} : { timeRange: extent.timeRange };
  // What is no number goes as it is, so that the service says what is wrong with it.
  const limit = Number(extent.limit || DEFAULT_LIMIT);
  return {
    name: "ad-hoc",
    method: "POST",
    path: "/oi-api/warm-queries",
    query: [],
    body: { query: kql, ...timeRange, limit },
  };
}

/** Gives the address behind the host. An empty value is a value: a string parameter may be emptied. */
export function addressOf(ask: Ask): string {
  const text = new URLSearchParams(ask.query.map(([name, value]) => [name, value])).toString();
  return text === "" ? ask.path : `${ask.path}?${text}`;
}

/** Runs a query. */
export async function rowsOf(ask: Ask, signal?: AbortSignal): Promise<QueryAnswer> {
  const options = { headers: { Accept: "application/json" }, ...(signal ? { signal } : {}) };
  const reply = await api.fetch(ask.method, addressOf(ask), ask.body, options);
  return await jsonOf<QueryAnswer>(reply, true, exactly);
}

/** Runs a query and saves its rows as a file. */
export async function save(ask: Ask, form: Form): Promise<void> {
  const reply = await api.fetch(ask.method, addressOf(ask), ask.body, { headers: { Accept: MEDIA[form] } });
  saveFile(await whole(reply, () => reply.blob()), `${ask.name}.${form}`);
}
