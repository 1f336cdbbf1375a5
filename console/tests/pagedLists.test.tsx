// Lists in pages: the text of the pager, and the rows, belong together while another page loads or after an error.
import type { ComponentChild } from "preact";
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../src/api/problem.ts";
import type { Table } from "../src/api/tables.ts";
import type { Webhook } from "../src/api/webhooks.ts";
import { Documents } from "../src/pages/data/Documents.tsx";
import { Decisions } from "../src/pages/inbox/Decisions.tsx";
import { ScopeList } from "../src/pages/scopes/ScopeList.tsx";
import Signatures from "../src/pages/signatures/Signatures.tsx";
import { Deliveries } from "../src/pages/webhooks/Deliveries.tsx";
import { parseHash } from "../src/router/route.ts";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { mountRoot, press, root, show, typeText } from "./mounted.ts";

const TABLE: Table = { store: "s", database: "d", name: "t", partitionKeyPath: "/line", verbs: new Set(["list"]) };
const WEBHOOK = { id: "w", enabled: true } as Webhook;
const FAILURE = new ApiError({ status: 429, code: "RATE_LIMITED", detail: "Too many requests" });
/** The first page of each of the lists; every list reads its own properties. */
const FIRST = {
  signatures: [{ target: "DomainEvents", scopeKey: "s", recordID: "000000000001" }],
  scopes: [{ target: "DomainEvents", scopeKey: "s", records: 1 }],
  deliveries: [{ id: "d", status: "delivered", attempts: [], nextAttemptAt: null }],
  amendments: [],
  cursor: "second",
  documents: [{ id: "old", line: "a" }],
  count: 1,
  continuationToken: "second",
};

beforeEach(() => signIn());

mountRoot();

/** Shows the first page of a list; all further requests fail. */
async function showFirstPage(list: ComponentChild): Promise<void> {
  vi.spyOn(session.api, "get").mockResolvedValue(FIRST);
  await show(list);
  await vi.waitFor(() => expect(root.querySelector("nav[aria-label=Pages]")).not.toBeNull());
  vi.spyOn(session.api, "get").mockRejectedValue(FAILURE);
}

test.each([
  ["signatures", <Signatures key="list" route={parseHash("#/signatures")} />, "Signatures 1 to 1"],
  ["chains", <ScopeList key="list" route={parseHash("#/scopes")} />, "1–1, and more"],
  ["deliveries", <Deliveries key="list" webhook={WEBHOOK} />, "Page 1"],
  ["pending amendments", <Decisions key="list" />, "Amendments, page 1"],
  ["documents", <Documents key="list" table={TABLE} />, "Page 1, 1 document"],
])("the pager of %s names the rows that are shown, also if the next page fails", async (_, list, text) => {
  await showFirstPage(list);
  await press("Next");
  await vi.waitFor(() => expect(root.textContent).toContain("Too many requests"));
  expect(root.querySelector("nav[aria-label=Pages]")?.textContent).toContain(text);
});

test("documents of an earlier partition key do not remain under another one", async () => {
  await showFirstPage(<Documents table={TABLE} />);
  expect(root.textContent).toContain("old");
  await typeText("b");
  await press("Show");
  await vi.waitFor(() => expect(root.textContent).toContain("Too many requests"));
  expect(root.textContent).not.toContain("old");
});
