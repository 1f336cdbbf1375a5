import { afterEach, expect, test, vi } from "vitest";
import type { WarmQuery } from "../src/api/queries.ts";
import Downloads from "../src/pages/downloads/Downloads.tsx";
import Imports from "../src/pages/imports/Imports.tsx";
import QueryDetail from "../src/pages/queries/detail/QueryDetail.tsx";
import Queries from "../src/pages/queries/Queries.tsx";
import LookupRun from "../src/pages/queries/run/LookupRun.tsx";
import { WarmRun } from "../src/pages/queries/run/WarmRun.tsx";
import { parseHash, type Route } from "../src/router/route.ts";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { mountRoot, root, show, submit, typeText } from "./mounted.ts";

afterEach(() => {
  vi.restoreAllMocks();
  window.location.hash = "";
});

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

test("a link with other inputs begins a new form, and a run keeps the form and its result", async () => {
  signIn();
  vi.spyOn(session.api, "get").mockResolvedValue({ connections: [] } as never);
  const answer = { columns: [], results: [], rowCount: 0, truncated: false, governance: {} };
  const run = vi.spyOn(session.api, "fetch").mockImplementation(async () => Response.json(answer));
  const open = async (hash: string) => {
    window.location.hash = hash;
    await show(<WarmRun query={QUERY} route={parseHash(hash)} />);
  };
  await open("#/queries/q?p.low=7&timeRange=PT1H");
  await open("#/queries/q?p.low=8&timeRange=P1D");
  expect(root.querySelector("input")?.value).toBe("8");
  expect(root.querySelector("select")?.value).toBe("P1D");
  await typeText("9");
  await submit();
  await vi.waitFor(() => expect(run).toHaveBeenCalledOnce());
  expect(run.mock.calls[0]?.[1]).toBe("/oi-api/warm-queries/q?p.low=9&timeRange=P1D");
  await open(window.location.hash);
  expect(window.location.hash).toBe("#/queries/q?p.low=9&timeRange=P1D");
  await vi.waitFor(() => expect(root.textContent).not.toContain("Not run yet"));
});

test("a link to another query begins a new form on the page for tokens without a list of queries", async () => {
  signIn();
  await show(<LookupRun route={{ ...route("p.low=7"), rest: ["q"] }} />);
  await show(<LookupRun route={{ ...route("p.low=8"), rest: ["r"] }} />);
  expect(root.querySelector("input")?.value).toBe("r");
  expect(root.querySelector("textarea")?.value).toBe("low=8");
});

test.each([
  ["downloads", Downloads],
  ["imports", Imports],
])("a link to another connection on the page %s selects that connection", async (_, Shown) => {
  signIn([]);
  vi.spyOn(session.api, "get").mockResolvedValue({ downloads: [], imports: [] } as never);
  await show(<Shown route={route("connection=a")} />);
  await show(<Shown route={route("connection=b")} />);
  expect(root.querySelector("input")?.value).toBe("b");
});
