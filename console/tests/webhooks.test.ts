import { execFileSync } from "node:child_process";
import { transformWithOxc } from "vite";
import { expect, test } from "vitest";
import type { Client } from "../src/api/client.ts";
import { createWebhook, type Delivery, type DeliveryPage, type Webhook } from "../src/api/webhooks.ts";
import { chooseListPause, describeResult } from "../src/pages/webhooks/Deliveries.tsx";
import { buildPythonReceiver, buildTypescriptReceiver, findPort } from "../src/pages/webhooks/snippets.ts";
import { NEW_WEBHOOK, toDefinition, WEBHOOK_FORM } from "../src/pages/webhooks/webhookDraft.ts";

const WEBHOOK: Webhook = {
  id: "w1",
  url: "https://hooks.example/plant",
  format: "teams",
  description: null,
  eventTypes: ["alert.firing"],
  filter: { surfaces: ["cooling"], severities: ["critical"] },
  enabled: false,
  createdAt: "2026-01-05T08:00:00Z",
  createdBy: "admin@plant-a.example",
  disabledReason: "gone",
  etag: '"1"',
};

function deliver(changes: Partial<Delivery>): Delivery {
  return {
    id: "msg_1",
    webhookId: "w1",
    eventType: "webhook.test",
    status: "pending",
    attempts: [],
    nextAttemptAt: null,
    createdAt: "2026-01-05T08:00:00Z",
    event: {},
    ...changes,
  };
}

test("a stored webhook keeps its definition in the form", () => {
  const { url, format, description, eventTypes, filter, enabled } = WEBHOOK;
  expect(WEBHOOK_FORM.toBody(WEBHOOK_FORM.toDraft(WEBHOOK))).toEqual({
    url,
    format,
    description,
    eventTypes,
    filter,
    enabled,
  });
  expect(WEBHOOK_FORM.path(WEBHOOK_FORM.toDraft(WEBHOOK))).toBe("/oi-api/webhooks/w1");
});

test("an empty list of a filter restricts nothing", () => {
  expect(toDefinition({ ...NEW_WEBHOOK, url: " https://hooks.example/ " })).toMatchObject({
    url: "https://hooks.example/",
    description: null,
    filter: {},
  });
});

test("an address and an event are required", () => {
  const draft = { ...NEW_WEBHOOK, url: "hooks.example", eventTypes: [] };
  expect(Object.keys(WEBHOOK_FORM.check(draft, true))).toEqual(["url", "eventTypes"]);
  expect(WEBHOOK_FORM.check(draft, true).url).toContain("https://");
  const complete = { ...NEW_WEBHOOK, url: "https://hooks.example/" };
  expect(Object.values(WEBHOOK_FORM.check(complete, true)).filter(Boolean)).toEqual([]);
});

test("a creation sends its idempotency key", async () => {
  const sent: unknown[] = [];
  const client = { post: (...all: unknown[]) => Promise.resolve(sent.push(all)) } as unknown as Client;
  const definition = toDefinition(NEW_WEBHOOK);
  await createWebhook(client, definition, "key-1");
  expect(sent).toEqual([["/oi-api/webhooks", definition, { headers: { "Idempotency-Key": "key-1" } }]]);
});

test("the result of a delivery is that of its latest attempt", () => {
  const attempt = { at: "2026-01-05T08:00:00Z", httpStatus: 204, error: null, durationMs: 3, reply: "" };
  expect(describeResult(deliver({}))).toBeNull();
  expect(describeResult(deliver({ attempts: [attempt] }))).toBe("status 204");
  const failed = { ...attempt, httpStatus: null, error: "The connection failed: refused." };
  expect(describeResult(deliver({ attempts: [attempt, failed] }))).toBe("The connection failed: refused.");
});

test("the log is read often while an attempt is due soon", () => {
  const now = Date.parse("2026-01-05T08:00:00Z");
  const pause = (deliveries: Delivery[], failed = false) => {
    const data: DeliveryPage = { deliveries, cursor: null };
    return chooseListPause({ data, before: undefined, failed, waited: 0 }, now);
  };
  const soon = deliver({ nextAttemptAt: "2026-01-05T08:00:05Z" });
  const late = deliver({ nextAttemptAt: "2026-01-05T10:00:00Z" });
  expect(pause([late, soon])).toBeLessThan(pause([late]));
  expect(pause([soon], true)).toBe(pause([late]));
});

test("a receiver listens on the port of the webhook", () => {
  expect(findPort("http://127.0.0.1:9123/x")).toBe(9123);
  expect(findPort("https://hooks.example:8443/")).toBe(9000);
  expect(buildPythonReceiver(9123)).toContain('("127.0.0.1", 9123)');
  expect(buildTypescriptReceiver(9123)).toContain(".listen(9123");
});

test("the receivers are valid programs", async () => {
  execFileSync("python3", ["-c", "import sys; compile(sys.stdin.read(), 'receiver.py', 'exec')"], {
    input: buildPythonReceiver(9000),
  });
  const { code } = await transformWithOxc(buildTypescriptReceiver(9000), "receiver.ts");
  expect(code).not.toContain("Record<string");
});
