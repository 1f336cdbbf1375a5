import { expect, test } from "vitest";
import { PAGES } from "../src/pages.ts";
import { buildHref, parseHash } from "../src/router/route.ts";
import { hasRights } from "../src/session/rights.ts";

test("an address that was made is read as it was meant", () => {
  const address = buildHref("audit", ["a/b", "ü?#"], { scope: "line 1&2", limit: 10, none: undefined, empty: "" });
  const route = parseHash(address);
  expect([route.page, route.rest]).toEqual(["audit", ["a/b", "ü?#"]]);
  expect(Object.fromEntries(route.query)).toEqual({ scope: "line 1&2", limit: "10" });
});

test.each(["", "#", "#/", "#//?x=1"])("%j leads to the first page", (hash) => {
  expect(parseHash(hash).page).toBe("");
});

test("what is not percent-encoded rightly is taken as it stands", () => {
  expect(parseHash("#/queries/%E0%A4%A").rest).toEqual(["%E0%A4%A"]);
});

test("pages have addresses and titles of their own, and load", async () => {
  expect(new Set(PAGES.map((page) => page.path)).size).toBe(PAGES.length);
  expect(new Set(PAGES.map((page) => page.title)).size).toBe(PAGES.length);
  for (const page of PAGES) {
    expect(typeof (await page.load()).default).toBe("function");
  }
}, 60_000);

test("a page needs all of its rights", () => {
  expect(hasRights(["Workspace.Catalog.Read"], ["Workspace.Catalog.Read", "Workspace.WarmQuery.Execute"])).toBe(false);
  expect(hasRights(["Workspace.Catalog.Read"], ["Workspace.Catalog.Read"])).toBe(true);
  expect(hasRights([], [])).toBe(true);
});
