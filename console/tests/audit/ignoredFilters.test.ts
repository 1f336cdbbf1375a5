import { expect, test, vi } from "vitest";
import { Client } from "@/api/client.ts";
import { exportRecords, queryRecords } from "@/api/provenance.ts";

const CHAIN = { target: "DomainEvents", scopeKey: "line-1" } as const;
const FILTERS = { endDate: "yesterday", limit: 10 };
const { signal } = new AbortController();
const api = new Client({ token: () => "t0ken", workspace: () => "plant a", refused: vi.fn() });

function replyWith(headers: Record<string, string>): void {
  vi.stubGlobal("fetch", async () => new Response("[]", { headers }));
}

test("records are not listed or exported as matching if the service ignored a filter", async () => {
  replyWith({ "x-provenance-ignored": "endDate" });
  const expected = { code: "FILTER_IGNORED", detail: expect.stringContaining("endDate") };
  await expect(queryRecords(api, CHAIN, FILTERS, signal)).rejects.toMatchObject(expected);
  await expect(exportRecords(api, CHAIN, { ...FILTERS, format: "csv" }, signal)).rejects.toMatchObject(expected);
});

test("records are listed and exported if the service applied all filters", async () => {
  replyWith({ "x-provenance-has-more": "true" });
  expect(await queryRecords(api, CHAIN, FILTERS, signal)).toEqual({ records: [], hasMore: true });
  expect(await (await exportRecords(api, CHAIN, { ...FILTERS, format: "json" }, signal)).text()).toBe("[]");
});
