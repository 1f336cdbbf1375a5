import type { Document } from "@/api/tables.ts";

/** A partition key as query parameters. */
export type PartitionQuery = { partitionKey?: string; partitionKeyType?: "json" };

/** Gives a document's partition key, undefined where the document has none. */
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

/** Writes a partition key as query parameters; undefined where a document cannot be named by it. */
export function toQuery(value: unknown): PartitionQuery | undefined {
  // An empty text is written as JSON, since empty parameters are left out.
  if (typeof value === "string" && value !== "") {
    return { partitionKey: value };
  }
  return value === undefined || (typeof value === "object" && value !== null)
    ? undefined
    : { partitionKey: JSON.stringify(value), partitionKeyType: "json" };
}
