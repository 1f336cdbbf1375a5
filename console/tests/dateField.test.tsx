import { useState } from "preact/hooks";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { DateField } from "../src/components/DateField.tsx";
import { INCOMPLETE, INCOMPLETE_ERROR } from "../src/components/dateFields.ts";
import { getZone, toggleZone } from "../src/shell/timeZone.ts";
import { mountRoot, root, show, typeInto } from "./mounted.ts";

const changed = vi.fn();

mountRoot();

function Form() {
  const [value, setValue] = useState("");
  const change = (instant: string) => {
    changed(instant);
    setValue(instant);
  };
  return <DateField label="From" value={value} onInput={change} />;
}

/** Makes the browser report a date of which a part is filled in, or an empty one, and fires an event. */
const report = (badInput: boolean, event: string) =>
  act(() => {
    const field = root.querySelector("input");
    if (field) Object.defineProperty(field, "validity", { value: { badInput }, configurable: true });
    field?.dispatchEvent(new Event(event, { bubbles: true }));
  });

test("an incomplete date is an error at its field and not an empty date, until it is cleared", async () => {
  await show(<Form />);
  await report(true, "keyup");
  expect(changed).not.toHaveBeenCalled();
  await report(true, "blur");
  expect(changed).toHaveBeenLastCalledWith(INCOMPLETE);
  expect(root.querySelector("[role=alert]")?.textContent).toBe(INCOMPLETE_ERROR);
  expect(root.querySelector("label")?.textContent).not.toContain("NaN");
  await report(false, "keyup");
  expect(changed).toHaveBeenLastCalledWith("");
  expect(root.querySelector("[role=alert]")).toBeNull();
  await report(true, "input");
  expect(changed).toHaveBeenLastCalledWith(INCOMPLETE);
});

test.each(["local", "utc"] as const)(
  "a year of five digits is an error at its field, and is not dropped, in the zone %s",
  async (zone) => {
    if (getZone() !== zone) toggleZone();
    await show(<Form />);
    const field = () => root.querySelector("input");
    // Browsers allow this year, but the document of this test clears it.
    Object.defineProperty(field(), "value", { value: "", writable: true });
    for (const [text, value] of [
      ["20226-11-21T14:03", INCOMPLETE],
      ["2026-11-21T14:03", expect.stringMatching(/^2026-11-21T/)],
    ]) {
      await typeInto(field(), String(text));
      await report(false, "blur");
      expect(changed).toHaveBeenLastCalledWith(value);
      expect(field()?.value).toBe(text);
      expect(root.querySelector("[role=alert]")?.textContent).toBe(value === INCOMPLETE ? INCOMPLETE_ERROR : undefined);
    }
    if (zone === "utc") toggleZone();
    localStorage.clear();
  },
);
