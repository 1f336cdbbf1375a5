import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import type { Identity } from "../src/api/keys.ts";
import { Header } from "../src/shell/Header.tsx";

const WHO: Identity = {
  ...{ principal: "ann@plant.example", name: "Ann", workspace: "plant-1", via: "jwt", expiresAt: null },
  accessRights: ["Workspace.Catalog.Read"],
};

test("the header shows no ID in the place of the workspace's name while the name is loading", async () => {
  let reply: (value: Response) => void = () => undefined;
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => (reply = resolve)));
  const root = document.body.appendChild(document.createElement("div"));
  const header = (who: Identity) => <Header who={who} navOpen={false} onToggleNav={() => undefined} />;
  await act(() => render(header(WHO), root));
  expect(root.querySelector("strong")?.textContent).toBe("");
  const data = { workspace: { id: "plant-1", name: "Cooling plant", description: null, stats: {} } };
  await act(() => reply(Response.json({ data })));
  await vi.waitFor(() => expect(root.querySelector("strong")?.textContent).toBe("Cooling plant"));
  await act(() => render(null, root));
  await act(() => render(header({ ...WHO, accessRights: [] }), root));
  expect(root.querySelector("strong")?.textContent).toBe("plant-1");
  await act(() => render(null, root));
  root.remove();
});
