import { api, at } from "@/api/index.ts";
import type { Container, Document, DocumentPage, Table } from "@/api/tables.ts";
import type { PartitionQuery } from "./partition.ts";

/** A document with the tag of its state. */
export interface Read {
  document: Document;
  etag: string;
}

const PAGE = 50;

export function containers(database: string, signal: AbortSignal): Promise<Container[]> {
  return api.get<Container[]>(at`/oi-api/data-stores/${database}/containers`, { signal });
}

export function createContainer(
  database: string,
  container: Pick<Container, "name" | "partitionKeyPath" | "dataClass">,
): Promise<Container> {
  return api.post<Container>(at`/oi-api/data-stores/${database}/containers`, container);
}

export function removeContainer(database: string, name: string): Promise<void> {
  return api.delete(at`/oi-api/data-stores/${database}/containers/${name}`);
}

export function list(
  table: Table,
  partition: PartitionQuery,
  token: string | null,
  signal: AbortSignal,
): Promise<DocumentPage> {
  const query = { ...partition, limit: PAGE, continuationToken: token };
  return api.get<DocumentPage>(address(table), { query, signal });
}

export async function read(table: Table, id: string, query: PartitionQuery, signal?: AbortSignal): Promise<Read> {
  const answer = await api.request<Document>("GET", one(table, id), undefined, {
    query: { ...query },
    ...(signal ? { signal } : {}),
  });
  return { document: answer.data, etag: answer.headers.get("etag") ?? "" };
}

export function create(table: Table, document: Document): Promise<Document> {
  return api.post<Document>(address(table), document);
}

/** Stores a document in place of the one with its id; with a tag only where it is still in that state. */
export async function replace(
  table: Table,
  id: string,
  query: PartitionQuery,
  document: Document,
  etag: string,
): Promise<Read> {
  const options = { query: { ...query }, headers: condition(etag) };
  const answer = await api.request<Document>("PUT", one(table, id), document, options);
  return { document: answer.data, etag: answer.headers.get("etag") ?? "" };
}

export function remove(table: Table, id: string, query: PartitionQuery, etag: string): Promise<void> {
  return api.delete(one(table, id), { query: { ...query }, headers: condition(etag) });
}

function condition(etag: string): Record<string, string> {
  return etag === "" ? {} : { "If-Match": etag };
}

function address({ store, database, name }: Table): string {
  return at`/oi-api/data-stores/${store}/databases/${database}/tables/${name}`;
}

function one(table: Table, id: string): string {
  return address(table) + at`/${id}`;
}
