import { api, readBody, readJson } from "@/api/index.ts";
import type { QueryResult } from "@/api/queries.ts";
import { saveFile } from "@/components/saveFile.ts";
import { buildHref } from "@/router/route.ts";
import { parseExactly } from "./exactJson.ts";

/** Time range and row limit of a run, as entered. */
export interface Extent {
  /** ISO 8601 duration up to now; empty for all times, or with `from` and `to`. */
  timeRange: string;
  /** Instant in UTC, RFC 3339; empty for none. */
  from: string;
  /** Instant in UTC, RFC 3339, not included; empty for now. */
  to: string;
  limit: string;
}

/** The properties of `Extent`, which are query parameters of the API and of addresses. */
export const EXTENT_NAMES = ["timeRange", "from", "to", "limit"] as const satisfies readonly (keyof Extent)[];

/** A call that runs an approved query or an ad-hoc text. */
export interface QueryCall {
  /** Base name of its files. */
  name: string;
  method: "GET" | "POST";
  path: string;
  /** Query parameters in order, GET only. */
  query: readonly (readonly [name: string, value: string])[];
  /** POST only. */
  body?: { query: string; timeRange?: string; from?: string; to?: string; limit: number };
}

export const DEFAULT_LIMIT = "1000";
export const MAX_ROWS = 10_000;

/** Returns advice for a truncated result with this many rows. */
export function adviseOnTruncation(rows: number): string {
  return rows >= MAX_ROWS
    ? "This is the maximum. Choose a shorter time range, a filter, or an aggregation."
    : `The result ends at the row limit. Raise it, up to ${MAX_ROWS.toLocaleString("en")}, or choose a shorter time range or an aggregation.`;
}

export type Form = "csv" | "parquet";
const MEDIA: Record<Form, string> = { csv: "text/csv", parquet: "application/vnd.apache.parquet" };

/** Returns the call of an approved query; `lookup` may be an API path. */
export function buildWarmCall(
  lookup: string,
  parameters: readonly (readonly [string, string])[],
  extent: Extent,
): QueryCall {
  const path = `/oi-api/warm-queries/${lookup.split("/").map(encodeURIComponent).join("/")}`;
  const query = [...parameters];
  for (const name of EXTENT_NAMES) {
    if (extent[name] !== "") {
      query.push([name, extent[name]]);
    }
  }
  return { name: lookup.replaceAll("/", "-"), method: "GET", path, query };
}

/** Returns the call of an ad-hoc query. */
export function buildAdHocCall(kql: string, extent: Extent): QueryCall {
  const { timeRange, from, to } = extent;
  // Invalid numbers are sent unchanged; the service rejects them with a message.
  const limit = Number(extent.limit || DEFAULT_LIMIT);
  return {
    name: "ad-hoc",
    method: "POST",
    path: "/oi-api/warm-queries",
    query: [],
    body: { query: kql, ...(timeRange && { timeRange }), ...(from && { from }), ...(to && { to }), limit },
  };
}

/** Tells whether two calls have the same inputs. */
export function isSameCall(left: QueryCall, right: QueryCall): boolean {
  return buildAddress(left) === buildAddress(right) && JSON.stringify(left.body) === JSON.stringify(right.body);
}

/** Returns path and query string. Empty values are sent, because a string parameter may be empty. */
export function buildAddress(ask: QueryCall): string {
  const text = new URLSearchParams(ask.query.map(([name, value]) => [name, value])).toString();
  return text === "" ? ask.path : `${ask.path}?${text}`;
}

/** Returns the address of the page that repeats a run of an approved query; it contains empty values, too. */
export function buildRunHref(lookup: string, ask: QueryCall): string {
  return buildAddress({ ...ask, path: buildHref("queries", [lookup]) });
}

/** Runs a query. */
export async function fetchRows(ask: QueryCall, signal?: AbortSignal): Promise<QueryResult> {
  const options = { headers: { Accept: "application/json" }, ...(signal ? { signal } : {}) };
  const reply = await api.fetch(ask.method, buildAddress(ask), ask.body, options);
  return await readJson<QueryResult>(reply, true, parseExactly);
}

/** Runs a query and saves its rows as a file. */
export async function saveRows(ask: QueryCall, form: Form): Promise<void> {
  const reply = await api.fetch(ask.method, buildAddress(ask), ask.body, { headers: { Accept: MEDIA[form] } });
  saveFile(await readBody(reply, () => reply.blob()), `${ask.name}.${form}`);
}
