import { render } from "preact";
import { expect, test, vi } from "vitest";
import { confirmNavigation, useUnsavedWarning } from "../src/router/unsaved.ts";
import { mountRoot, root, show } from "./mounted.ts";

function Form({ unsaved }: { unsaved: boolean }) {
  useUnsavedWarning(unsaved);
  return <p>{unsaved ? "not stored" : "stored"}</p>;
}

mountRoot();

test("the question ends with the rendering that shows the input as stored", async () => {
  const asked = vi.fn<() => boolean>(() => false);
  window.confirm = asked;
  await show(<Form unsaved />);
  expect(confirmNavigation("#/audit")).toBe(false);
  // Without act(), which would also run the effects that come after painting.
  render(<Form unsaved={false} />, root);
  expect(root.textContent).toBe("stored");
  expect(confirmNavigation("#/audit")).toBe(true);
  expect(asked).toHaveBeenCalledTimes(1);
});
