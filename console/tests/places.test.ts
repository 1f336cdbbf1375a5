import { expect, test } from "vitest";
import { Places } from "../src/api/places.ts";

function work() {
  let finish: (value: string) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const promise = new Promise<string>((resolve, reject) => {
    finish = resolve;
    fail = reject;
  });
  const state = { started: false, finish, fail };
  const start = () => {
    state.started = true;
    return promise;
  };
  return { state, start };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

test("work above the limit starts in order, when a place becomes free", async () => {
  const places = new Places(2);
  const jobs = [work(), work(), work(), work()];
  const results = jobs.map((job) => places.run(job.start));
  await settled();
  expect(jobs.map((job) => job.state.started)).toEqual([true, true, false, false]);
  jobs[1]?.state.finish("b");
  await settled();
  expect(jobs.map((job) => job.state.started)).toEqual([true, true, true, false]);
  for (const job of jobs) {
    job.state.finish("x");
  }
  expect(await results[1]).toBe("b");
  expect(await Promise.all(results)).toHaveLength(4);
});

test("failed work frees its place and its error reaches the caller", async () => {
  const places = new Places(1);
  const first = work();
  const failed = places.run(first.start);
  const next = places.run(() => Promise.resolve("next"));
  first.state.fail(new Error("lost"));
  await expect(failed).rejects.toThrow("lost");
  expect(await next).toBe("next");
});

test("work whose signal aborts while it waits never starts and blocks nobody", async () => {
  const places = new Places(1);
  const first = work();
  const running = places.run(first.start);
  const stop = new AbortController();
  const left = work();
  const waiting = places.run(left.start, stop.signal);
  const last = places.run(() => Promise.resolve("last"));
  stop.abort();
  await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
  first.state.finish("done");
  expect(await running).toBe("done");
  expect(await last).toBe("last");
  expect(left.state.started).toBe(false);
  await expect(places.run(left.start, stop.signal)).rejects.toMatchObject({ name: "AbortError" });
});
