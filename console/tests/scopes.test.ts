import { expect, test, vi } from "vitest";
import { type AuditScope, fetchAllAuditScopes, fetchBrokenChains } from "../src/api/auditScopes.ts";
import type { Client } from "../src/api/client.ts";
import { filterChains, nameBundle } from "../src/pages/scopes/bundleChoice.ts";

function createScope(target: AuditScope["target"], scopeKey: string | null): AuditScope {
  return { target, scopeKey, records: 1, lastVerdict: null } as AuditScope;
}

const SCOPES = [createScope("PlatformConfig", null), createScope("DomainEvents", "Line 1")];

test("all pages of the list of chains are read", async () => {
  const get = vi
    .fn()
    .mockResolvedValueOnce({ scopes: SCOPES.slice(0, 1), cursor: "next" })
    .mockResolvedValueOnce({ scopes: SCOPES.slice(1), cursor: null });
  const api = { get } as unknown as Client;
  expect(await fetchAllAuditScopes(api, undefined, new AbortController().signal)).toEqual(SCOPES);
  expect(get.mock.calls.map(([, options]) => options.query.cursor)).toEqual([undefined, "next"]);
});

test("only the broken chains are requested for their banner", async () => {
  const get = vi.fn().mockResolvedValue({ scopes: SCOPES, cursor: null });
  const api = { get } as unknown as Client;
  expect(await fetchBrokenChains(api, "DomainEvents", new AbortController().signal)).toEqual(SCOPES);
  expect(get.mock.calls[0]?.[1]).toMatchObject({ query: { target: "DomainEvents", verdict: "broken" } });
});

test("chains are found by every word of their name", () => {
  expect(filterChains(SCOPES, "line events")).toEqual([{ target: "DomainEvents", scopeKey: "Line 1" }]);
  expect(filterChains(SCOPES, "")).toHaveLength(2);
  expect(filterChains(SCOPES, "line 2")).toEqual([]);
});

test("a bundle is named by its first chains", () => {
  expect(nameBundle({ scopes: [{ target: "PlatformConfig", scopeKey: null }] })).toBe("Configuration");
  const scopes = ["a", "b", "c", "d"].map((scopeKey) => ({ target: "DomainEvents" as const, scopeKey }));
  expect(nameBundle({ scopes })).toBe("Plant events of a, Plant events of b and 2 more");
});
