import { afterEach, expect, test, vi } from "vitest";
import type { WarmQuery } from "../src/api/queries.ts";
import QueryDetail from "../src/pages/queries/detail/QueryDetail.tsx";
import Queries from "../src/pages/queries/Queries.tsx";
import LookupRun from "../src/pages/queries/run/LookupRun.tsx";
import { WarmRun } from "../src/pages/queries/run/WarmRun.tsx";
import { parseHash, type Route } from "../src/router/route.ts";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { mountRoot, root, show } from "./mounted.ts";

afterEach(() => vi.restoreAllMocks());

mountRoot();

const route = (address: string) => ({ rest: ["q"], query: new URLSearchParams(address) }) as unknown as Route;
const QUERY = {
  ...{ lookup: "q", name: "Q", surface: "s", kql: "T", schema: null },
  parameters: [{ name: "low", type: "real" }],
} as unknown as WarmQuery;

test("the page of a query names inputs of the address that the query does not have", async () => {
  signIn();
  vi.spyOn(session.api, "get").mockResolvedValue({ connections: [] } as never);
  await show(<WarmRun query={QUERY} route={route("p.low=7&limit=5&timeRange=PT1H&from=&to=")} />);
  expect(root.textContent).not.toContain("The address contains inputs");
  await show(<WarmRun query={QUERY} route={route("p.low=7&p.x=1&lmit=5")} />);
  expect(root.textContent).toContain("They are ignored: p.x, lmit");
});

test("the page for tokens without a list of queries takes the parameters from the address", async () => {
  signIn();
  await show(<LookupRun route={route("p.low=7&p.text=a%3Db&limit=5")} />);
  expect(root.querySelector("textarea")?.value).toBe("low=7\ntext=a=b");
  expect(root.textContent).not.toContain("They are ignored");
});

test("the page for tokens without a list of queries names the inputs that do not fit into a line", async () => {
  signIn();
  await show(<LookupRun route={route("p.low=7&lmit=5&p.text=a%0Ab")} />);
  expect(root.querySelector("textarea")?.value).toBe("low=7");
  expect(root.textContent).toContain("They are ignored: lmit, p.text");
});

test("an API path whose second segment is edit opens the query and not an editor", async () => {
  signIn(["Workspace.Catalog.Read", "Workspace.WarmQuery.Manage"]);
  const warmQueries = [{ ...QUERY, apiPath: "cooling/edit/all", editedBy: "ann@t" }];
  vi.spyOn(session.api, "fetch").mockImplementation(async () => Response.json({ warmQueries }));
  vi.spyOn(session.api, "get").mockResolvedValue({ connections: [] } as never);
  await show(<Queries route={parseHash("#/queries/cooling/edit/all")} />);
  await vi.waitFor(() => expect(window.location.hash).toBe("#/queries/q"));
});

test("an address with an API path becomes that of its query, with the same inputs", async () => {
  signIn();
  const warmQueries = [{ ...QUERY, apiPath: "cooling/temperature", editedBy: "ann@t" }];
  vi.spyOn(session.api, "fetch").mockImplementation(async () => Response.json({ warmQueries }));
  vi.spyOn(session.api, "get").mockResolvedValue({ connections: [] } as never);
  await show(<QueryDetail route={parseHash("#/queries/cooling/temperature?p.low=7&p.text=")} />);
  await vi.waitFor(() => expect(window.location.hash).toBe("#/queries/q?p.low=7&p.text="));
});
