import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Dialog } from "../src/components/Dialog.tsx";
import { Field } from "../src/components/Field.tsx";
import { confirmNavigation } from "../src/router/unsaved.ts";
import { findButton, mountRoot, root, show } from "./mounted.ts";

const asked = vi.fn<() => boolean>();
const closed = vi.fn();

mountRoot();

beforeEach(async () => {
  window.confirm = asked;
  await show(
    <Dialog
      title="Form"
      onClose={closed}
      actions={(close) => (
        <button type="button" onClick={close}>
          Leave
        </button>
      )}
    >
      <Field label="Name" value="stored" onInput={() => undefined} />
    </Dialog>,
  );
});

afterEach(() => {
  asked.mockReset();
  closed.mockReset();
});

function type(text: string): void {
  const input = root.querySelector("input") as HTMLInputElement;
  input.dispatchEvent(new FocusEvent("focusin", { bubbles: true }));
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

function pressEscape(): void {
  root
    .querySelector("dialog")
    ?.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
}

test("a dialog without typed text closes without a question", () => {
  pressEscape();
  expect([asked, closed].map((mock) => mock.mock.calls.length)).toEqual([0, 1]);
});

test("typed text is discarded only after a question, also by a button of the dialog", () => {
  type("typed");
  asked.mockReturnValue(false);
  pressEscape();
  findButton("Leave")?.click();
  expect(confirmNavigation("#/audit")).toBe(false);
  expect([asked.mock.calls.length, closed.mock.calls.length]).toEqual([3, 0]);
  asked.mockReturnValue(true);
  pressEscape();
  expect(closed).toHaveBeenCalledOnce();
});

test("text that is typed and taken back needs no question", () => {
  type("typed");
  type("stored");
  pressEscape();
  expect([asked, closed].map((mock) => mock.mock.calls.length)).toEqual([0, 1]);
  expect(confirmNavigation("#/audit")).toBe(true);
});

function press(target: Element | null | undefined): void {
  target?.dispatchEvent(new Event("pointerdown", { bubbles: true }));
}

test("a click outside closes a dialog; the end of a selection and the second click of a double click do not", () => {
  const dialog = root.querySelector("dialog");
  press(root.querySelector("input"));
  dialog?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  expect(closed).not.toHaveBeenCalled();
  press(dialog);
  dialog?.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 2 }));
  expect(closed).not.toHaveBeenCalled();
  dialog?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  expect(closed).toHaveBeenCalledOnce();
});
