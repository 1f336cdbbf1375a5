import { api, formatPath } from "@/api/index.ts";
import type { Container, Document, DocumentPage, Table } from "@/api/tables.ts";
import type { PartitionQuery } from "./partition.ts";

/** A document with its ETag. */
export interface StoredDocument {
  document: Document;
  etag: string;
}

const PAGE = 50;

export function fetchContainers(database: string, signal: AbortSignal): Promise<Container[]> {
  return api.get<Container[]>(formatPath`/oi-api/data-stores/${database}/containers`, { signal });
}

/** Creates a container; a repeat with the same key creates nothing. */
export function createContainer(
  database: string,
  container: Pick<Container, "name" | "partitionKeyPath" | "dataClass">,
  key: string,
): Promise<Container> {
  const path = formatPath`/oi-api/data-stores/${database}/containers`;
  return api.post<Container>(path, container, { headers: { "Idempotency-Key": key } });
}

export function removeContainer(database: string, name: string): Promise<void> {
  return api.delete(formatPath`/oi-api/data-stores/${database}/containers/${name}`);
}

export function fetchDocuments(
  table: Table,
  partition: PartitionQuery,
  token: string | null,
  signal: AbortSignal,
): Promise<DocumentPage> {
  const query = { ...partition, limit: PAGE, continuationToken: token };
  return api.get<DocumentPage>(buildTablePath(table), { query, signal });
}

export async function fetchDocument(
  table: Table,
  id: string,
  query: PartitionQuery,
  signal?: AbortSignal,
): Promise<StoredDocument> {
  const answer = await api.request<Document>("GET", buildDocumentPath(table, id), undefined, {
    query: { ...query },
    ...(signal ? { signal } : {}),
  });
  return { document: answer.data, etag: answer.headers.get("etag") ?? "" };
}

export function createDocument(table: Table, document: Document): Promise<Document> {
  return api.post<Document>(buildTablePath(table), document);
}

/** Replaces a document; with an ETag only if that still matches. */
export async function replaceDocument(
  table: Table,
  id: string,
  query: PartitionQuery,
  document: Document,
  etag: string,
): Promise<StoredDocument> {
  const options = { query: { ...query }, headers: buildCondition(etag) };
  const answer = await api.request<Document>("PUT", buildDocumentPath(table, id), document, options);
  return { document: answer.data, etag: answer.headers.get("etag") ?? "" };
}

export function deleteDocument(table: Table, id: string, query: PartitionQuery, etag: string): Promise<void> {
  return api.delete(buildDocumentPath(table, id), { query: { ...query }, headers: buildCondition(etag) });
}

function buildCondition(etag: string): Record<string, string> {
  return etag === "" ? {} : { "If-Match": etag };
}

function buildTablePath({ store, database, name }: Table): string {
  return formatPath`/oi-api/data-stores/${store}/databases/${database}/tables/${name}`;
}

function buildDocumentPath(table: Table, id: string): string {
  return buildTablePath(table) + formatPath`/${id}`;
}
