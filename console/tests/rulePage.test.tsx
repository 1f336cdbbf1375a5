import { expect, test, vi } from "vitest";
import { RulePage } from "../src/pages/alerts/RulePage.tsx";
import { session } from "../src/session/index.ts";
import { mountRoot, root, show, submit, typeInto } from "./mounted.ts";

/** Returns a stored rule as the service writes it, with whole numbers beyond 2^53. */
function writeRule(name: string): string {
  const state =
    '"state":"ok","error":null,"lastEvaluatedAt":null,"nextEvaluationAt":null,"editedBy":null,"updatedAt":null';
  const condition =
    '"parameters":{"id":9007199254740993},"condition":{"column":"n","operator":"gt","value":9007199254740993}';
  const rest =
    '"severity":"info","enabled":true,"surface":"s","kind":"threshold","every":"PT1M","for":"PT0S","query":"q"';
  return `{"lookup":"r","etag":"${name}","name":"${name}",${rest},${condition},${state}}`;
}

mountRoot();

test("a save of a rule's name changes no digit of its other fields", async () => {
  const who = { principal: "me", name: "Me", workspace: "w", accessRights: ["Workspace.Alert.Manage"], via: "jwt" };
  const state = { state: "in", who, expiresAt: new Date(), number: 1 };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
  const sent: string[] = [];
  vi.spyOn(session.api, "fetch").mockImplementation(async (method, path, body) => {
    if (method === "PUT") {
      sent.push(JSON.stringify(body));
    }
    const isRule = path === "/oi-api/alert-rules/r";
    return new Response(isRule ? writeRule(method === "PUT" ? "Saved" : "Old") : "{}");
  });
  const findInput = (name: string) => {
    const label = [...root.querySelectorAll("label")].find((each) => each.textContent === name);
    return root.querySelector<HTMLInputElement>(`[id="${label?.htmlFor}"]`);
  };
  await show(<RulePage lookup="r" />);
  await vi.waitFor(() => expect(findInput("Name")?.value).toBe("Old"));
  await typeInto(findInput("Name"), "New");
  await submit();
  await vi.waitFor(() => expect(findInput("Name")?.value).toBe("Saved"));
  expect(sent).toHaveLength(1);
  expect(sent[0]).toContain('"name":"New"');
  expect(sent[0]).toContain('"parameters":{"id":"9007199254740993"}');
  // Old browsers, and old versions of Node.js, cannot write all digits of a number.
  const value = "rawJSON" in JSON ? "9007199254740993" : "9007199254740992";
  expect(sent[0]).toContain(`"value":${value}`);
  expect(findInput("Value")?.value).toBe("9007199254740993");
});
