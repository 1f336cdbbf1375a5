import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { CreateKey } from "../../src/pages/keys/CreateKey.tsx";

afterEach(() => document.body.replaceChildren());

test("the form of a new key opens on a page that was loaded by http, which has no crypto.randomUUID", () => {
  vi.stubGlobal("crypto", { getRandomValues: crypto.getRandomValues.bind(crypto) });
  const root = document.body.appendChild(document.createElement("div"));
  act(() => render(<CreateKey members={[]} onCancel={() => undefined} onMade={() => undefined} />, root));
  expect(root.textContent).toContain("Create the key");
  act(() => render(null, root));
});
