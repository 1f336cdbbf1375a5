import { expect, test } from "vitest";
import type { AuditBundle } from "../src/api/bundles.ts";
import { BundleCard } from "../src/pages/scopes/BundleCard.tsx";
import { mountRoot, root, show } from "./mounted.ts";

const CHAIN = { target: "DomainEvents", scopeKey: "line-1" } as const;
const BUNDLE: AuditBundle = {
  bundleId: "b1",
  status: "completed",
  statusUrl: "/oi-api/provenance/bundles/b1",
  scopes: [CHAIN, { target: "PlatformConfig", scopeKey: null }],
  filters: { startDate: null, endDate: null, entityId: null },
  createdAt: "2026-01-06T08:00:00Z",
  progress: { scopesDone: 2, scopesTotal: 2, records: 4 },
  brokenScopes: [],
  files: [],
  expiresAt: "2026-01-07T08:00:00Z",
  error: null,
  errorCode: null,
};

mountRoot();

test("a bundle warns of its broken chains", async () => {
  await show(<BundleCard bundle={BUNDLE} onCancel={async () => {}} />);
  expect(root.querySelector("[role=alert]")).toBeNull();
  const brokenScopes = [" line-1", "line-2", "line-3"].map((scopeKey) => ({ ...CHAIN, scopeKey }));
  await show(<BundleCard bundle={{ ...BUNDLE, brokenScopes }} onCancel={async () => {}} />);
  const named = [...root.querySelectorAll("[role=alert] span")].map(({ textContent }) => textContent);
  for (const text of ["Plant events of \\u0020line-1", "Plant events of line-2", "Plant events of line-3"]) {
    expect(named).toContain(text);
  }
  const many = Array.from({ length: 22 }, (_, index) => ({ ...CHAIN, scopeKey: `line-${index}` }));
  await show(<BundleCard bundle={{ ...BUNDLE, brokenScopes: many }} onCancel={async () => {}} />);
  expect(root.querySelector("[role=alert]")?.textContent).toMatch(/line-19and 2 more$/);
});

test("a bundle of an earlier version of the service, without broken chains, is shown", async () => {
  const { brokenScopes: _, ...bundle } = BUNDLE;
  await show(<BundleCard bundle={bundle} onCancel={async () => {}} />);
  expect(root.textContent).toContain("4 records");
});

test("a bundle shows ambiguous spaces in the names of its broken chains and of its entity as codes", async () => {
  const brokenScopes = [{ ...CHAIN, scopeKey: "line-1 " }];
  const filters = { ...BUNDLE.filters, entityId: "B  1" };
  await show(<BundleCard bundle={{ ...BUNDLE, brokenScopes, filters }} onCancel={async () => {}} />);
  expect(root.querySelector("[role=alert]")?.textContent).toContain("line-1\\u0020");
  expect(root.textContent).toContain("entity B \\u00201");
});
