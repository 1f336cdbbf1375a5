import { afterEach, beforeEach, expect, test } from "vitest";
import { showToast, subscribeToToasts, type Toast } from "../src/components/toasts.ts";
import { recallSource, rememberSource } from "../src/pages/downloads/rememberedSources.ts";
import { recallKql, rememberKql } from "../src/pages/queries/rememberedKql.ts";
import { session } from "../src/session/index.ts";

beforeEach(() => {
  sessionStorage.clear();
  // Other tests of this process can have left messages.
  session.signOut();
});
afterEach(() => session.signOut());

test("what was typed, started and told is kept while somebody is signed in, and gone when they sign out", () => {
  let toasts: readonly Toast[] = [];
  subscribeToToasts((now) => (toasts = now));
  rememberKql("Telemetry | where Secret");
  rememberSource("d-1", "connection pump-rig");
  showToast("The download of pump-rig was cancelled");
  expect([recallKql(), recallSource("d-1"), toasts.length]).toEqual([
    "Telemetry | where Secret",
    "connection pump-rig",
    1,
  ]);
  session.signOut();
  expect([recallKql(), recallSource("d-1"), toasts.length]).toEqual([undefined, undefined, 0]);
});
