import { expect, test } from "vitest";
import { JobRequests, needsNewKey } from "../src/api/idempotency.ts";
import { ApiError } from "../src/api/problem.ts";

const refuse = (status: number, code: string) => new ApiError({ status, code, detail: "" });

test("a refused request needs a new key", () => {
  expect(needsNewKey(refuse(400, "VALIDATION_FAILED"))).toBe(true);
  expect(needsNewKey(refuse(422, "IDEMPOTENCY_KEY_REUSED"))).toBe(true);
});

test("a request keeps its key while an earlier attempt was possibly executed", () => {
  expect(needsNewKey(refuse(409, "IDEMPOTENCY_KEY_IN_USE"))).toBe(false);
  expect(needsNewKey(refuse(401, "TOKEN_EXPIRED"))).toBe(false);
  expect(needsNewKey(refuse(429, "RATE_LIMITED"))).toBe(false);
  expect(needsNewKey(refuse(503, "UNAVAILABLE"))).toBe(false);
  expect(needsNewKey(refuse(0, "UNREACHABLE"))).toBe(false);
  expect(needsNewKey(new Error("no reply"))).toBe(false);
});

test("a form repeats a request with its key until the outcome is known, and sends other content with another key", async () => {
  const requests = new JobRequests();
  const keys: string[] = [];
  const send = (content: object, error?: ApiError) =>
    requests
      .run(content, async (key) => {
        keys.push(key);
        if (error) throw error;
        return { status: "pending" as const };
      })
      .catch(() => undefined);
  await send({ a: 1 }, refuse(0, "UNREACHABLE"));
  await send({ a: 2 }, refuse(400, "VALIDATION_FAILED"));
  await send({ a: 2 }, refuse(503, "UNAVAILABLE"));
  await send({ a: 3 });
  await send({ a: 1 });
  await send({ a: 1 });
  const [first, refused, other, started, repeated, later] = keys;
  expect(repeated).toBe(first);
  expect(new Set([first, refused, other, started, later]).size).toBe(5);
});

const ENDED = ["cancelled", "failed"] as const;

test.each(ENDED)("a form starts another job if the one of a lost reply has the status %s", async (status) => {
  const requests = new JobRequests();
  const keys: string[] = [];
  const send = (...replies: (typeof status | "pending" | ApiError)[]) =>
    requests.run({}, async (key) => {
      keys.push(key);
      const reply = replies.shift() ?? "pending";
      if (reply instanceof ApiError) throw reply;
      return { status: reply };
    });
  await expect(send(refuse(0, "UNREACHABLE"))).rejects.toThrow();
  expect(await send(status, "pending")).toEqual({ status: "pending" });
  const [lost, repeated, other] = keys;
  expect(repeated).toBe(lost);
  expect(other).not.toBe(lost);
});
