import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readParameters } from "@/api/oauth.ts";
import { isSafeRedirection } from "@/pages/consent/redirection.ts";
import { takeCode } from "@/session/link.ts";
import { findConsent, forgetConsent, rememberConsent } from "@/session/pendingConsent.ts";

const CODE = "#sign-in=abcdefghijklmnopqrstuvwxyz";

beforeEach(() => sessionStorage.clear());
afterEach(() => vi.useRealTimers());

test("the parameters of a request are sent on unchanged, and only the resource may be repeated", () => {
  const query = new URLSearchParams("client_id=a&state=x%26y&resource=r1&resource=r2");
  expect(readParameters(query)).toEqual({ client_id: "a", state: "x&y", resource: ["r1", "r2"] });
});

test("the browser goes to web addresses and apps, never to a script", () => {
  expect(
    ["https://a.example/cb?code=1", "http://127.0.0.1:4711/", "com.example.app:/cb"].map(isSafeRedirection),
  ).toEqual([true, true, true]);
  expect(["javascript:alert(1)", "data:text/html,x", "no address"].map(isSafeRedirection)).toEqual([
    false,
    false,
    false,
  ]);
});

test("a sign-in link resumes the consent of the tab", () => {
  rememberConsent("#/consent?client_id=a");
  window.location.hash = CODE;
  expect(takeCode()).toBe("abcdefghijklmnopqrstuvwxyz");
  expect(window.location.hash).toBe("#/consent?client_id=a");
});

test("a consent is forgotten after the decision and after a quarter of an hour", () => {
  vi.useFakeTimers();
  rememberConsent("#/queries");
  expect(findConsent()).toBeUndefined();
  rememberConsent("#/consent?client_id=a");
  vi.advanceTimersByTime(16 * 60_000);
  expect(findConsent()).toBeUndefined();
  rememberConsent("#/consent?client_id=b");
  expect(findConsent()).toBe("#/consent?client_id=b");
  forgetConsent();
  expect(findConsent()).toBeUndefined();
});
