import { expect, test, vi } from "vitest";
import { Attempts } from "../src/api/attempts.ts";
import { ApiError, createUnreachableError, isOutcomeUnknown } from "../src/api/problem.ts";

const refuse = (status: number, code: string) => new ApiError({ status, code, detail: "" });
const OUTDATED = () => Promise.reject(refuse(412, "PRECONDITION_FAILED"));
const LOST = () => Promise.reject(createUnreachableError());
const missing = () => Promise.resolve(undefined);

async function loseFirstReply(): Promise<Attempts> {
  const attempts = new Attempts();
  await expect(attempts.run(LOST, missing)).rejects.toMatchObject({ code: "UNREACHABLE", isPossiblyOwn: false });
  return attempts;
}

test("a refusal without an attempt of unknown outcome is passed on, and nothing is read", async () => {
  const attempts = new Attempts();
  const find = vi.fn(missing);
  await expect(attempts.run(() => Promise.reject(refuse(400, "INVALID_REQUEST")), find)).rejects.toThrow();
  await expect(attempts.run(OUTDATED, find)).rejects.toMatchObject({ isPossiblyOwn: false });
  expect(find).not.toHaveBeenCalled();
});

test("after a lost reply, the stored result of the earlier attempt is returned", async () => {
  const attempts = await loseFirstReply();
  expect(await attempts.run(OUTDATED, () => Promise.resolve("stored"))).toBe("stored");
  await expect(attempts.run(OUTDATED, missing)).rejects.toMatchObject({ isPossiblyOwn: false });
});

test("after a lost reply, a refusal is possibly own if the result is not there or cannot be read", async () => {
  const attempts = await loseFirstReply();
  await expect(attempts.run(OUTDATED, missing)).rejects.toMatchObject({ isPossiblyOwn: true });
  await expect(attempts.run(OUTDATED, LOST)).rejects.toMatchObject({
    code: "PRECONDITION_FAILED",
    isPossiblyOwn: true,
  });
});

test("a success ends the uncertainty about earlier attempts", async () => {
  const attempts = await loseFirstReply();
  expect(await attempts.run(() => Promise.resolve("stored"), missing)).toBe("stored");
  expect(attempts.isUncertain).toBe(false);
});

test("the outcome of a change is unknown after a lost reply, a failure of the service, or while it runs", () => {
  const unknown = [createUnreachableError(), refuse(503, "UNAVAILABLE"), refuse(200, "ANSWER_CUT")];
  expect([...unknown, refuse(409, "IDEMPOTENCY_KEY_IN_USE"), new Error("unexpected")].every(isOutcomeUnknown)).toBe(
    true,
  );
  const known = [refuse(400, "INVALID_REQUEST"), refuse(401, "TOKEN_EXPIRED"), refuse(429, "RATE_LIMITED")];
  expect([...known, refuse(0, "NOT_SENT")].some(isOutcomeUnknown)).toBe(false);
});
