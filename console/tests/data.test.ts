import { expect, test } from "vitest";
import { tablesFromPaths } from "../src/api/tables.ts";
import { readPartition, toQuery } from "../src/pages/data/partition.ts";

const TABLES = "/oi-api/data-stores/mes/databases/orders/tables";

test("tables are read out of the API's description, with the verbs that are open", () => {
  const keyed = { "x-partition-key-path": "/line" };
  const found = tablesFromPaths({
    "/oi-api/data-stores/{lookup}/containers": { get: {} },
    "/oi-api/data-stores/{store}/databases/{database}/tables/{table}": { get: {} },
    [`${TABLES}/workorders`]: { get: keyed, post: keyed },
    [`${TABLES}/workorders/{documentId}`]: { get: keyed, put: keyed },
    [`${TABLES}/recipes/{documentId}`]: { get: { "x-partition-key-path": "/id" } },
  });
  expect(found.map(({ name, partitionKeyPath, verbs }) => [name, partitionKeyPath, [...verbs].sort()])).toEqual([
    ["workorders", "/line", ["create", "list", "read", "replace"]],
    ["recipes", "/id", ["read"]],
  ]);
});

test.each([
  [{ line: "l1" }, { partitionKey: "l1" }],
  [{ line: "" }, { partitionKey: '""', partitionKeyType: "json" }],
  [{ line: 42 }, { partitionKey: "42", partitionKeyType: "json" }],
  [{ line: null }, { partitionKey: "null", partitionKeyType: "json" }],
  [{}, undefined],
  [{ line: {} }, undefined],
])("the partition key of %j is asked for as %j", (document, query) => {
  expect(toQuery(readPartition(document, "/line"))).toEqual(query);
});

test("a partition key may be a member of a member", () => {
  expect(readPartition({ site: { line: "l1" } }, "/site/line")).toBe("l1");
  expect(readPartition({ site: "l1" }, "/site/line")).toBeUndefined();
});
