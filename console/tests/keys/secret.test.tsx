import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Secret } from "../../src/pages/keys/Secret.tsx";
import { navigate } from "../../src/router/route.ts";

const asked = vi.fn<() => boolean>();
let root: HTMLElement;

beforeEach(() => {
  window.confirm = asked;
  asked.mockReset().mockReturnValue(false);
  window.location.hash = "#/keys";
  root = document.body.appendChild(document.createElement("div"));
  const leave = () => navigate("#/overview");
  act(() => render(<Secret title="Your new token" secret="t" facts={[]} onDone={leave} />, root));
});

afterEach(() => {
  act(() => render(null, root));
  root.remove();
});

test("a secret that is shown once is not left without a question", () => {
  navigate("#/team");
  expect(asked).toHaveBeenCalledTimes(1);
  expect(window.location.hash).toBe("#/keys");
});

test("after the secret was copied, the page goes on without a question", () => {
  const button = [...root.querySelectorAll("button")].find((each) => each.textContent?.includes("I have copied it"));
  act(() => button?.click());
  expect(window.location.hash).toBe("#/overview");
  expect(asked).not.toHaveBeenCalled();
});
