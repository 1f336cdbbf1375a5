import { afterEach, expect, test, vi } from "vitest";
import { navigate } from "../src/router/route.ts";
import { blockLeaving, confirmNavigation, confirmOwnNavigation, confirmSignOut } from "../src/router/unsaved.ts";

const asked = vi.fn<() => boolean>();
window.confirm = asked;
let release = () => {};

afterEach(() => {
  release();
  release = () => {};
  asked.mockReset();
  document.body.replaceChildren();
});

function answering(yes: boolean): void {
  asked.mockReturnValue(yes);
  release = blockLeaving();
}

test("nobody is asked where nothing is unsaved", () => {
  expect(confirmNavigation("#/audit") && confirmSignOut()).toBe(true);
  expect(asked).not.toHaveBeenCalled();
});

test("who refuses to leave stays, by a button, a link and when the tab is closed", () => {
  window.location.hash = "#/queries/-/new";
  answering(false);
  navigate("#/audit");
  expect(window.location.hash).toBe("#/queries/-/new");
  const link = document.body.appendChild(document.createElement("a"));
  link.setAttribute("href", "#/audit");
  expect(link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))).toBe(false);
  expect(window.dispatchEvent(new Event("beforeunload", { cancelable: true }))).toBe(false);
  expect(confirmSignOut()).toBe(false);
});

test("who agrees is asked once, and what was saved asks nobody", () => {
  answering(true);
  expect(confirmNavigation("#/audit") && confirmNavigation("#/audit")).toBe(true);
  expect(asked).toHaveBeenCalledTimes(1);
  release();
  expect(confirmNavigation("#/keys")).toBe(true);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(window.dispatchEvent(new Event("beforeunload", { cancelable: true }))).toBe(true);
});

test("a navigation before the input does not answer the question", () => {
  navigate("#/connections/c1");
  expect(confirmNavigation("#/policies")).toBe(true);
  answering(false);
  expect(confirmNavigation("#/connections/c1")).toBe(false);
  expect(asked).toHaveBeenCalledTimes(1);
});

test("a dialog guards against links and a closed tab, but not against the program that closes it", () => {
  asked.mockReturnValue(false);
  release = blockLeaving("dialog");
  expect(confirmOwnNavigation("#/audit")).toBe(true);
  expect(confirmNavigation("#/keys")).toBe(false);
  expect(asked).toHaveBeenCalledExactlyOnceWith("Discard unsaved changes?");
  expect(window.dispatchEvent(new Event("beforeunload", { cancelable: true }))).toBe(false);
});

test("a text that other pages keep guards against a closed tab and a sign-out, but not against other pages", () => {
  asked.mockReturnValue(false);
  release = blockLeaving("tab");
  expect(confirmNavigation("#/audit")).toBe(true);
  expect(asked).not.toHaveBeenCalled();
  expect(confirmSignOut()).toBe(false);
  expect(window.dispatchEvent(new Event("beforeunload", { cancelable: true }))).toBe(false);
});
