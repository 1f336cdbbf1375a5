import { beforeEach, expect, test, vi } from "vitest";
import { Secret } from "../../src/pages/keys/Secret.tsx";
import { navigate } from "../../src/router/route.ts";
import { mountRoot, press, show } from "../mounted.ts";

const asked = vi.fn<() => boolean>();

mountRoot();

beforeEach(async () => {
  window.confirm = asked;
  asked.mockReset().mockReturnValue(false);
  window.location.hash = "#/keys";
  const leave = () => navigate("#/overview");
  await show(<Secret title="Your new token" secret="t" facts={[]} onDone={leave} />);
});

test("a secret that is shown once is not left without a question", () => {
  navigate("#/team");
  expect(asked).toHaveBeenCalledTimes(1);
  expect(window.location.hash).toBe("#/keys");
});

test("after the secret was copied, the page goes on without a question", async () => {
  await press("I have copied it");
  expect(window.location.hash).toBe("#/overview");
  expect(asked).not.toHaveBeenCalled();
});
