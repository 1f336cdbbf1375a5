import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EntraButton } from "../src/session/EntraButton.tsx";
import { session } from "../src/session/index.ts";
import { mountRoot, press, show } from "./mounted.ts";

const CONFIG = { authorizeUrl: "https://e/authorize", tokenUrl: "https://e/token", clientId: "c", scope: "s" };

/** A channel that delivers at once, so that tests need no wait. */
class Channel {
  static open = new Set<Channel>();
  onmessage: ((event: { data: unknown }) => void) | undefined;

  constructor() {
    Channel.open.add(this);
  }

  postMessage(data: unknown): void {
    for (const other of Channel.open) {
      if (other !== this) other.onmessage?.({ data });
    }
  }

  close(): void {
    Channel.open.delete(this);
  }
}

const tab = { location: { href: "" } };

beforeEach(() => {
  Channel.open.clear();
  tab.location.href = "";
  vi.stubGlobal("BroadcastChannel", Channel);
  vi.stubGlobal("open", () => tab);
});

afterEach(() => vi.unstubAllGlobals());

mountRoot();

/** Opens the tab of the sign-in, and waits until its address is known. */
async function openTab(): Promise<string> {
  await show(<EntraButton config={CONFIG} inNewTab />);
  await press("Sign in with Entra ID");
  await vi.waitFor(() =>
    expect([tab.location.href, Channel.open.size]).toEqual([expect.stringContaining("state="), 1]),
  );
  return new URL(tab.location.href).searchParams.get("state") ?? "";
}

/** Offers a reply as the opened tab does; returns the states that a tab accepted. */
async function finishSignIn(state: string): Promise<unknown[]> {
  const accepted: unknown[] = [];
  const channel = new Channel();
  channel.onmessage = ({ data }) => accepted.push((data as { accepted?: string }).accepted);
  await act(async () => channel.postMessage({ reply: new URLSearchParams({ state, code: "c" }).toString() }));
  return accepted;
}

test("the page that opened the tab of a sign-in accepts its reply", async () => {
  const signIn = vi.spyOn(session, "signInWithEntra").mockResolvedValue(undefined);
  const state = await openTab();
  expect(await finishSignIn(state)).toEqual([state]);
  expect(signIn).toHaveBeenCalledOnce();
});

test("a tab that is finished after the end of the sign-in dialog replaces no session", async () => {
  const signIn = vi.spyOn(session, "signInWithEntra").mockResolvedValue(undefined);
  const state = await openTab();
  await show(null);
  expect(await finishSignIn(state)).toEqual([]);
  expect(signIn).not.toHaveBeenCalled();
});
