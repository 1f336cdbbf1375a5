// The element in which a test shows a component, and what a user does there.
import { type ComponentChild, createElement, render } from "preact";
import { useEffect } from "preact/hooks";
import { act } from "preact/test-utils";
import { afterEach, beforeEach } from "vitest";

/** Contains the component of the current test. */
export let root: HTMLElement;

/**
 * Adds `root` to the page before each test of the calling file, and removes it afterwards.
 *
 * Each file calls this itself, because all files share one copy of this module. Call it after an `afterEach` that
 * restores timers: these hooks run in reverse order, so the component is removed first. Call it before a `beforeEach`
 * that shows a component.
 */
export function mountRoot(): void {
  beforeEach(() => {
    dropWaitingEffects();
    HTMLDialogElement.prototype.showModal ??= () => undefined;
    root = document.body.appendChild(document.createElement("div"));
  });
  afterEach(() => {
    act(() => render(null, root));
    root.remove();
  });
}

/**
 * Ends the wait of effects whose test has ended with a fake timer.
 *
 * Preact waits for one frame for all effects. If that frame never comes, no effect of a later test would run.
 */
function dropWaitingEffects(): void {
  const Effect = () => {
    useEffect(() => undefined);
    return null;
  };
  const place = document.createElement("div");
  act(() => render(createElement(Effect, null), place));
  act(() => render(null, place));
}

/** Renders a component, or nothing, in place of the one before, and waits for its first requests. */
export const show = (shown: ComponentChild) => act(async () => render(shown, root));

/** Finds the last button whose text contains a text; the button of a dialog follows the one that opened it. */
export const findButton = (text: string) =>
  [...root.querySelectorAll("button")].findLast((button) => button.textContent?.includes(text));

/** Presses the last button whose text contains a text. */
export const press = (text: string) => act(() => findButton(text)?.click());

/** Replaces the text of a field. */
export const typeInto = (field: HTMLInputElement | HTMLTextAreaElement | null | undefined, text: string) =>
  act(() => {
    if (field) field.value = text;
    field?.dispatchEvent(new Event("input", { bubbles: true }));
  });

/** Replaces the text of the first field that is enabled. */
export const typeText = (text: string) =>
  typeInto(root.querySelector<HTMLInputElement>("input:not([disabled]), textarea:not([disabled])"), text);

/** Submits the form, without the browser's default action. */
export const submit = () =>
  act(() => {
    root.querySelector("form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  });

/** Chooses a file in the first field for files. */
export const chooseFile = (file: File) =>
  act(() => {
    const input = root.querySelector<HTMLInputElement>("input[type=file]");
    if (input) Object.defineProperty(input, "files", { value: [file], configurable: true });
    input?.dispatchEvent(new Event("change", { bubbles: true }));
  });
