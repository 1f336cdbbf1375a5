import type { Client } from "./client.ts";

/** An operation on a table's documents. */
export type Verb = "list" | "read" | "create" | "replace" | "delete";

/** A container with published documents, and the verbs available to the caller. */
export interface Table {
  store: string;
  database: string;
  name: string;
  /** `/line`, or `/a/b` for a property of a property. */
  partitionKeyPath: string;
  verbs: ReadonlySet<Verb>;
}

/** A container of a database, from `GET /oi-api/data-stores/{database}/containers` lists it. */
export interface Container {
  name: string;
  partitionKeyPath: string;
  dataClass: "operational" | "reference" | null;
  Declared: boolean;
  provisioned: boolean;
}

/** A document of a table. */
export type Document = Record<string, unknown>;

/** A page of documents. */
export interface DocumentPage {
  documents: Document[];
  count: number;
  continuationToken: string | null;
}

type Operation = { "x-partition-key-path"?: string };
type Paths = Record<string, Record<string, Operation>>;

const PATH =
  /^\/oi-api\/data-stores\/(?<store>[^/{}]+)\/databases\/(?<database>[^/{}]+)\/tables\/(?<name>[^/{}]+)(?<one>\/\{documentId\})?$/;
const VERBS: readonly Verb[] = ["list", "read", "create", "replace", "delete"];
const OF_ALL: Record<string, Verb> = { get: "list", post: "create" };
const OF_ONE: Record<string, Verb> = { get: "read", put: "replace", delete: "delete" };

/** Returns the tables available to the caller, from the OpenAPI document. */
export async function fetchTables(api: Client, signal?: AbortSignal): Promise<Table[]> {
  return tablesFromPaths((await api.get<{ paths: Paths }>("/oi-api/openapi", signal ? { signal } : {})).paths);
}

/** Reads tables out of the paths of an OpenAPI document. */
export function tablesFromPaths(paths: Paths): Table[] {
  const found = new Map<string, TableDraft>();
  for (const [path, operations] of Object.entries(paths)) {
    const place = PATH.exec(path)?.groups as TablePath | undefined;
    if (place) {
      const { store, database, name, one } = place;
      const key = `${store}/${database}/${name}`;
      const table = found.get(key) ?? { store, database, name, partitionKeyPath: "", verbs: new Set<Verb>() };
      found.set(key, table);
      addVerbs(table, one ? OF_ONE : OF_ALL, operations);
    }
  }
  for (const table of found.values()) {
    table.verbs = new Set(VERBS.filter((verb) => table.verbs.has(verb)));
  }
  return [...found.values()];
}

type TableDraft = Table & { verbs: Set<Verb> };
type TablePath = { store: string; database: string; name: string; one?: string };

function addVerbs(table: TableDraft, known: Record<string, Verb>, operations: Record<string, Operation>): void {
  for (const [method, operation] of Object.entries(operations)) {
    const verb = known[method];
    if (verb) {
      table.verbs.add(verb);
      table.partitionKeyPath = operation["x-partition-key-path"] ?? table.partitionKeyPath;
    }
  }
}
