// The banner of broken chains, and the verdict on all chains in the inbox.
import type { ComponentChild } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../src/api/problem.ts";
import Inbox from "../src/pages/inbox/Inbox.tsx";
import { BrokenChain } from "../src/pages/scopes/BrokenChains.tsx";
import { parseHash } from "../src/router/route.ts";
import { session } from "../src/session/index.ts";
import { mountRoot, root, show } from "./mounted.ts";

const CHAIN = { target: "DomainEvents", scopeKey: "line-1" } as const;
const VALID = { ...CHAIN, records: 1, lastVerdict: "valid", lastVerifiedAt: "2026-01-05T08:00:00Z" };
const BROKEN = { ...VALID, lastVerdict: "broken" };
const INTACT = "All verified chains are intact";
const FOUND = "found broken by the verification";
const MINUTE_MS = 60_000;

let broken: object[] | ApiError;

beforeEach(() => {
  vi.useFakeTimers();
  const accessRights = ["Workspace.Provenance.Read"];
  const who = { principal: "me", name: "Me", workspace: "w", accessRights, via: "jwt", expiresAt: null };
  const state = { state: "in", who, expiresAt: new Date(), number: 1 };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
  vi.spyOn(session.api, "get").mockImplementation(async (_path, { query } = {}) => {
    const scopes = query?.verdict === "broken" ? broken : [VALID];
    if (scopes instanceof ApiError) {
      throw scopes;
    }
    return { scopes, cursor: null } as never;
  });
});

afterEach(() => {
  vi.useRealTimers();
});

mountRoot();

async function showLoaded(child: ComponentChild): Promise<void> {
  await show(child);
  await wait(0);
}

/** Lets time pass; the reply to a request of this time is rendered, too. */
async function wait(milliseconds: number): Promise<void> {
  await act(() => vi.advanceTimersByTimeAsync(milliseconds).then(() => undefined));
  await act(() => vi.advanceTimersByTimeAsync(0).then(() => undefined));
}

test("a chain that is found broken later replaces the good verdict of an open inbox", async () => {
  broken = [];
  await showLoaded(<Inbox route={parseHash("#/inbox")} />);
  expect(root.textContent).toContain(INTACT);
  expect(root.textContent).not.toContain(FOUND);
  broken = [BROKEN];
  await wait(MINUTE_MS);
  expect(root.textContent).toContain("1 broken chain");
  expect(root.textContent).toContain(FOUND);
  expect(root.textContent).not.toContain(INTACT);
});

test("the banner of a chain that counts no records warns of them, but names no values on the page", async () => {
  broken = [BROKEN, { ...BROKEN, scopeKey: "line-2", records: 0 }];
  await showLoaded(<Inbox route={parseHash("#/inbox")} />);
  const banners = [...root.querySelectorAll("[role=alert]")].map((each) => each.textContent ?? "");
  expect(
    banners.map((each) => [
      /Do not rely on these values/.test(each),
      /removed or altered .* Do not rely on the records/.test(each),
      /line-\d/.exec(each)?.[0],
    ]),
  ).toEqual([
    [true, false, "line-1"],
    [false, true, "line-2"],
  ]);
});

test("an inbox that cannot read the verdicts any more does not call the chains intact", async () => {
  broken = [];
  await showLoaded(<Inbox route={parseHash("#/inbox")} />);
  expect(root.textContent).toContain(INTACT);
  broken = new ApiError({ status: 503, code: "PROVENANCE_UNAVAILABLE", detail: "The audit log does not respond." });
  await wait(MINUTE_MS);
  expect(root.textContent).toContain("broken chains are possibly not shown");
  expect(root.textContent).toContain("Verdict unknown");
  expect(root.textContent).not.toContain(INTACT);
});

test("a workspace without an audit log has no error about its chains", async () => {
  broken = new ApiError({ status: 403, code: "PROVENANCE_NOT_PROVISIONED", detail: "No audit log." });
  await showLoaded(<BrokenChain chain={CHAIN} newest={undefined} />);
  expect(root.textContent).toBe("");
});

test("a verification on the page of a chain shows and removes the banner at once", async () => {
  const at = "2026-01-06T08:00:00Z";
  broken = [BROKEN];
  await showLoaded(<BrokenChain chain={CHAIN} newest={undefined} />);
  expect(root.textContent).toContain(FOUND);
  broken = [];
  await showLoaded(<BrokenChain chain={CHAIN} newest={{ broken: false, at }} />);
  expect(root.textContent).toBe("");
  await showLoaded(<BrokenChain chain={CHAIN} newest={{ broken: true, at }} />);
  expect(root.textContent).toContain(FOUND);
});
