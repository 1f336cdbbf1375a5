// The element in which unit tests show components.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { mountRoot, root } from "./mounted.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

mountRoot();

function Effect() {
  const [isRun, setIsRun] = useState(false);
  useEffect(() => setIsRun(true), []);
  return <b>{isRun ? "run" : "waiting"}</b>;
}

test("an effect waits for a frame", () => {
  render(<Effect />, root);
  expect(root.textContent).toBe("waiting");
});

test("an effect whose test has ended does not stop the effects of the next test", async () => {
  render(<Effect />, root);
  await vi.advanceTimersByTimeAsync(1000);
  expect(root.textContent).toBe("run");
});
