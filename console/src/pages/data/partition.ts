import type { Document } from "@/api/tables.ts";

/** A partition key as query parameters. */
export type PartitionQuery = { partitionKey?: string; partitionKeyType?: "json" };

/** Returns a document's partition key, undefined without one. */
export function readPartition(document: Document, path: string): unknown {
  let value: unknown = document;
  for (const name of path.split("/").slice(1)) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) {
      return undefined;
    }
    value = (value as Document)[name];
  }
  return value;
}

/** Converts a partition key to query parameters; undefined for other types. */
export function toQuery(value: unknown): PartitionQuery | undefined {
  // An empty text is sent as JSON, because empty parameters are not sent.
  if (typeof value === "string" && value !== "") {
    return { partitionKey: value };
  }
  return value === undefined || (typeof value === "object" && value !== null)
    ? undefined
    : { partitionKey: JSON.stringify(value), partitionKeyType: "json" };
}
