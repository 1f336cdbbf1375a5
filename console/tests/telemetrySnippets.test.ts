import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { buildBoundKeyRequest, buildKeyRequest, splitWords } from "../src/pages/keys/keyRequest.ts";
import {
  buildCurl,
  buildNodeRed,
  buildPythonClient,
  buildTelegraf,
  suggestDevice,
} from "../src/pages/keys/telemetrySnippets.ts";

const SENDER = { origin: "http://127.0.0.1:7071", keyId: "abcd2345", connection: "pump-rig", device: "rig-1" };
const DRAFT = { name: "gateway", owner: "", ends: "90" };

/** Returns the arguments of each call of curl in a shell script, whose first call prints a token. */
function readCalls(script: string): string[][] {
  const curl = `curl() { printf '%s\\0' "$@" >&2; printf '\\n' >&2; echo '{"Token": "t0.k_-n", "ExpiresAt": "x"}'; }`;
  const output = execFileSync("sh", ["-c", `{ ${curl}\n${script}\n} 2>&1 >/dev/null`], {
    env: { OI_KEY: "secret", PATH: process.env.PATH },
    encoding: "utf-8",
  });
  return output
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\0").slice(0, -1));
}

test.each(["rig-1", "it's; $(touch x) `id`", 'a "b" \\ c', "ü ☃"])(
  "curl sends one message of the device %j",
  (device) => {
    const [exchange, send] = readCalls(buildCurl({ ...SENDER, device }));
    expect(exchange).toContain("Authorization: Bearer secret");
    expect(exchange?.at(-1)).toBe("http://127.0.0.1:7071/workspace/api/keys/jwt");
    expect(send).toContain("Authorization: Bearer t0.k_-n");
    expect(send).toContain("http://127.0.0.1:7071/oi-api/telemetry/pump-rig");
    expect(JSON.parse(send?.at(-1) ?? "")).toEqual({ deviceId: device, temperature: 21.5 });
  },
);

test("Telegraf signs in with the key's id and secret", () => {
  const text = buildTelegraf(SENDER);
  expect(text).toContain('token_url = "http://127.0.0.1:7071/oauth2/token"');
  expect(text).toContain('client_id = "abcd2345"');
  expect(text).toContain('"deviceId": "rig-1"');
  expect(buildTelegraf({ ...SENDER, device: "it's" })).toMatch(/json_transformation = "\[metrics.*\\"it's\\".*\]"\n/);
});

test("Telegraf sends each metric with a message id, uncompressed, and repeats no rejected batch", () => {
  const text = buildTelegraf(SENDER);
  expect(text).toContain('"messageId": tags.message_id');
  expect(text).toContain('metric.tags["message_id"] = "%x" % digest');
  expect(text).toContain("non_retryable_statuscodes = [400, 413]");
  expect(text).not.toContain("content_encoding");
});

test("Node-RED imports the flow, whose functions parse and whose wires lead to nodes", () => {
  const nodes = JSON.parse(buildNodeRed(SENDER)) as {
    id: string;
    func?: string;
    wires: string[][];
    payload?: string;
  }[];
  const ids = new Set(nodes.map(({ id }) => id));
  for (const { func, wires } of nodes) {
    expect(wires.flat().every((id) => ids.has(id))).toBe(true);
    if (func !== undefined) {
      expect(() => new Function("msg", "flow", "env", func)).not.toThrow();
    }
  }
  expect(JSON.parse(nodes[0]?.payload ?? "")).toEqual({ deviceId: "rig-1", temperature: 21.5 });
});

test("Python uses the client and reads the key from the environment", () => {
  expect(buildPythonClient({ ...SENDER, device: 'a"b' })).toContain(
    'workspace.telemetry.send("pump-rig", [{"deviceId": "a\\"b", "temperature": 21.5}])',
  );
});

test.each([
  [undefined, "pump-rig"],
  [null, "pump-rig"],
  [["rig-*"], "rig-1"],
  [["gauge-0[2-4]?", "x"], "gauge-021"],
])("the patterns %j suggest the device %s", (patterns, device) => {
  expect(suggestDevice("pump-rig", patterns)).toBe(device);
});

test("a bound key names connections and devices, and no rights", () => {
  expect(buildBoundKeyRequest(DRAFT, { connections: ["pump-rig"], devices: " rig-*,  gauge-1 " })).toEqual({
    name: "gateway",
    expiresInDays: 90,
    connections: ["pump-rig"],
    devices: ["rig-*", "gauge-1"],
  });
  const open = buildBoundKeyRequest({ ...DRAFT, owner: "a@b", ends: "" }, { connections: ["x"], devices: "" });
  expect(open).toEqual({ name: "gateway", principal: "a@b", connections: ["x"] });
  expect(splitWords(" \n ")).toEqual([]);
});

test("a key with all rights of its owner names none", () => {
  const held = ["Workspace.Catalog.Read", "Workspace.Mcp.Use"] as const;
  expect(buildKeyRequest(DRAFT, new Set(held), held)).not.toHaveProperty("rights");
  expect(buildKeyRequest(DRAFT, new Set([held[1]]), held)).toHaveProperty("rights", ["Workspace.Mcp.Use"]);
});
