import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import type { Identity } from "../src/api/keys.ts";
import { Header } from "../src/shell/Header.tsx";
import { mountRoot, root, show } from "./mounted.ts";

const WHO: Identity = {
  ...{ principal: "ann@plant.example", name: "Ann", workspace: "plant-1", via: "jwt", expiresAt: null },
  accessRights: ["Workspace.Catalog.Read"],
};

mountRoot();

test("the header shows no ID in the place of the workspace's name while the name is loading", async () => {
  let reply: (value: Response) => void = () => undefined;
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => (reply = resolve)));
  const header = (who: Identity) => <Header who={who} navOpen={false} onToggleNav={() => undefined} />;
  await show(header(WHO));
  expect(root.querySelector("strong")?.textContent).toBe("");
  const data = { workspace: { id: "plant-1", name: "Cooling plant", description: null, stats: {} } };
  await act(() => reply(Response.json({ data })));
  await vi.waitFor(() => expect(root.querySelector("strong")?.textContent).toBe("Cooling plant"));
  await show(null);
  await show(header({ ...WHO, accessRights: [] }));
  expect(root.querySelector("strong")?.textContent).toBe("plant-1");
});
