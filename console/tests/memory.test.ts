import { afterEach, beforeEach, expect, test } from "vitest";
import { onToasts, type Toast, toast } from "../src/components/toasts.ts";
import { noteStarted, startedSource } from "../src/pages/downloads/started.ts";
import { keepKql, keptKql } from "../src/pages/queries/kept.ts";
import { session } from "../src/session/index.ts";

beforeEach(() => sessionStorage.clear());
afterEach(() => session.signOut());

test("what was typed, started and told is kept while somebody is signed in, and gone when they sign out", () => {
  let toasts: readonly Toast[] = [];
  onToasts((now) => (toasts = now));
  keepKql("Telemetry | where Secret");
  noteStarted("d-1", "connection pump-rig");
  toast("The download of pump-rig was cancelled");
  expect([keptKql(), startedSource("d-1"), toasts.length]).toEqual([
    "Telemetry | where Secret",
    "connection pump-rig",
    1,
  ]);
  session.signOut();
  expect([keptKql(), startedSource("d-1"), toasts.length]).toEqual([undefined, undefined, 0]);
});
