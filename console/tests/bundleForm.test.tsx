import { afterEach, expect, test, vi } from "vitest";
import { BundleForm } from "../src/pages/scopes/BundleForm.tsx";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { mountRoot, root, show } from "./mounted.ts";

afterEach(() => vi.restoreAllMocks());

mountRoot();

test("the form of a bundle says what a part of a chain does not prove", async () => {
  signIn();
  vi.spyOn(session.api, "get").mockResolvedValue({ scopes: [], cursor: null } as never);
  await show(<BundleForm onStarted={() => undefined} />);
  expect(root.textContent).toContain("the bundle proves each record in it, but not that none is missing");
});
