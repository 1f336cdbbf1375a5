// Pages that the browser's Back button shows again from memory.
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { reloadAfterSignOut } from "../src/session/restoredPage.ts";
import { Session } from "../src/session/session.ts";

let reload: MockInstance<() => void>;
const session = new Session();

beforeEach(() => {
  sessionStorage.clear();
  reload = vi.spyOn(window.location, "reload").mockImplementation(() => undefined);
  vi.stubGlobal("fetch", async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    return new Response(JSON.stringify({ principal: "a@t", name: "A", workspace: "w", accessRights: [], expiresAt }));
  });
});

afterEach(() => {
  session.signOut();
  vi.unstubAllGlobals();
});

test("a restored page goes on while the tab stores its session", async () => {
  await session.signInWithToken("mine");
  reloadAfterSignOut(session, { persisted: true });
  session.signOut();
  reloadAfterSignOut(session, { persisted: true });
  expect(reload).not.toHaveBeenCalled();
});

test("a restored page is reloaded after a sign-out or another sign-in on a later page of the tab", async () => {
  await session.signInWithToken("mine");
  sessionStorage.clear();
  reloadAfterSignOut(session, { persisted: false });
  expect(reload).not.toHaveBeenCalled();
  reloadAfterSignOut(session, { persisted: true });
  expect(reload).toHaveBeenCalledTimes(1);
  await new Session().signInWithToken("another");
  reloadAfterSignOut(session, { persisted: true });
  expect(reload).toHaveBeenCalledTimes(2);
});
