import { afterEach, expect, test, vi } from "vitest";
import { Client, formatPath } from "../src/api/client.ts";
import { ApiError } from "../src/api/problem.ts";
import { readStream } from "../src/pages/audit/streaming.ts";

const refused = vi.fn();
const api = new Client({ token: () => "t0ken", workspace: () => "plant a", refused });

function answers(...replies: (Response | Error)[]) {
  const sent = vi.fn((_address: string, _init: RequestInit) => {
    const reply = replies.shift();
    return reply instanceof Response ? Promise.resolve(reply) : Promise.reject(reply);
  });
  vi.stubGlobal("fetch", sent);
  return sent;
}

function problem(status: number, members: object, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(members), { status, headers: { "x-request-id": "r-1", ...headers } });
}

async function failure(work: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
  refused.mockReset();
});

test("a call carries the token as a header, never in its address, and leaves empty parameters out", async () => {
  const sent = answers(new Response('{"a":1}'));
  expect(await api.get("/x", { query: { q: "a b", none: undefined, empty: "", zero: 0 } })).toEqual({ a: 1 });
  const [address, init] = sent.mock.calls[0] ?? [];
  expect(address).toBe("/x?q=a+b&zero=0");
  expect(new Headers(init?.headers).get("authorization")).toBe("Bearer t0ken");
  expect(init).toMatchObject({ credentials: "omit", redirect: "error" });
});

test("only paths of the service are called", async () => {
  const sent = answers();
  await expect(api.get("https://evil.example/")).rejects.toThrow(TypeError);
  await expect(api.get("//evil.example/")).rejects.toThrow(TypeError);
  expect(sent).not.toHaveBeenCalled();
});

test("values in a path cannot leave their segment", () => {
  expect(formatPath`/oi-api/downloads/${"../keys?x#y"}/file`).toBe("/oi-api/downloads/..%2Fkeys%3Fx%23y/file");
});

test("a problem document becomes an error with everything that it says", async () => {
  const errors = [{ field: "limit", message: "too much" }, "nonsense"];
  answers(problem(400, { code: "INVALID_REQUEST", detail: "It breaks rules.", errors, allowed: ["x"] }));
  const error = await failure(api.post("/x", {}));
  expect(error).toMatchObject({ status: 400, code: "INVALID_REQUEST", detail: "It breaks rules.", requestId: "r-1" });
  expect(error.errors).toEqual([errors[0]]);
  expect(error.fieldMessage("limit")).toBe("too much");
  expect(error.members.allowed).toEqual(["x"]);
});

test("a failure that is no problem document is an error all the same", async () => {
  answers(new Response("<html>", { status: 502 }));
  expect(await failure(api.post("/x"))).toMatchObject({ status: 502, code: "HTTP_502" });
});

test("no answer is an error that says so", async () => {
  answers(new TypeError("failed to fetch"));
  expect(await failure(api.get("/x"))).toMatchObject({ status: 0, code: "UNREACHABLE" });
});

test("a 401 is told to the session", async () => {
  answers(problem(401, { code: "UNAUTHENTICATED", detail: "The token has expired." }));
  const error = await failure(api.get("/x"));
  expect(refused).toHaveBeenCalledExactlyOnceWith(error, "t0ken");
});

test("a throttled read waits as long as it is told and is sent again; a write is not", async () => {
  vi.useFakeTimers();
  const throttled = () => problem(429, { code: "RATE_LIMITED" }, { "retry-after": "2" });
  const sent = answers(throttled(), new Response("1"), throttled());
  const read = api.get("/x");
  await vi.advanceTimersByTimeAsync(1999);
  expect(sent).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(await read).toBe(1);
  expect(await failure(api.post("/x"))).toMatchObject({ status: 429, retryAfterSeconds: 2 });
});

test("a read that is throttled for long, or again and again, fails", async () => {
  vi.useFakeTimers();
  answers(problem(429, {}, { "retry-after": "60" }));
  expect(await failure(api.get("/x"))).toMatchObject({ retryAfterSeconds: 60 });
  const again = () => problem(429, {}, { "retry-after": "1" });
  const sent = answers(again(), again(), again(), again());
  const failed = failure(api.get("/x"));
  await vi.advanceTimersByTimeAsync(10_000);
  expect((await failed).status).toBe(429);
  expect(sent).toHaveBeenCalledTimes(3);
});

test("an aborted call stays an abort", async () => {
  answers(new DOMException("gone", "AbortError"));
  await expect(api.get("/x")).rejects.toMatchObject({ name: "AbortError" });
});

test("an empty body is no failure", async () => {
  answers(new Response(null, { status: 204 }));
  await expect(api.delete("/x")).resolves.toBeUndefined();
});

test("GraphQL names the workspace and raises the first error with its code", async () => {
  const sent = answers(
    new Response('{"data":{"n":1}}'),
    new Response('{"errors":[{"message":"No.","extensions":{"code":"FORBIDDEN"}}]}'),
  );
  expect(await api.graphql("{n}")).toEqual({ n: 1 });
  expect(sent.mock.calls[0]?.[0]).toBe("/v1/plant%20a/graphql");
  expect(await failure(api.graphql("{n}"))).toMatchObject({ code: "FORBIDDEN", detail: "No." });
});

test.each([
  ["a page of a proxy", "<!doctype html><p>Sign in</p>"],
  ["a cut body", '{"keys": [{"na'],
  ["nothing", ""],
])("an answer that is no JSON, %s, is an error that says so in words", async (_, body) => {
  answers(new Response(body, { headers: { "x-request-id": "r-2" } }));
  const error = await failure(api.get("/x"));
  expect(error).toMatchObject({ status: 200, code: "ANSWER_UNREADABLE", requestId: "r-2" });
  expect(error.detail).not.toContain("token");
});

test("a connection that is cut within the body is an error that says so; an abort stays one", async () => {
  const failing = (reason: unknown) => new Response(new ReadableStream({ pull: (to) => to.error(reason) }));
  answers(failing(new TypeError("network error")), failing(new DOMException("gone", "AbortError")));
  expect(await failure(api.get("/x"))).toMatchObject({ code: "ANSWER_CUT" });
  await expect(api.get("/x")).rejects.toMatchObject({ name: "AbortError" });
});

test("GraphQL without a body is an error", async () => {
  answers(new Response("<html>"));
  expect(await failure(api.graphql("{n}"))).toMatchObject({ code: "ANSWER_UNREADABLE" });
});

test("a long body that is cut is an error, not half a file", async () => {
  const body = new ReadableStream({
    start: (to) => to.enqueue(new Uint8Array(3)),
    pull: (to) => to.error(new TypeError("network error")),
  });
  expect(await failure(readStream(new Response(body), () => undefined))).toMatchObject({ code: "ANSWER_CUT" });
});
