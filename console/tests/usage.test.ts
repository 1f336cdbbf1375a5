import { afterEach, expect, test } from "vitest";
import { forgetUsage, noteUsage, onUsage, usage } from "../src/api/usage.ts";

afterEach(forgetUsage);

function told(policy: string, standing: string): void {
  noteUsage(new Headers({ "RateLimit-Policy": policy, RateLimit: standing }));
}

test("the headers of a reply say where the caller stands", () => {
  let changes = 0;
  const end = onUsage(() => {
    changes += 1;
  });
  told('"default";q=600;w=60', '"default";r=599;t=1');
  end();
  expect(usage()).toMatchObject({ limit: 600, windowSeconds: 60, remaining: 599, resetSeconds: 1 });
  told('"default";q=600;w=60', '"default";r=598;t=1');
  expect([changes, usage()?.remaining]).toEqual([1, 598]);
});

test("a reply that does not tell changes nothing", () => {
  told('"default";q=600;w=60', '"default";r=599;t=1');
  noteUsage(new Headers());
  told("nonsense", "r=1");
  told('"default";q=600', '"default";r=1;t=1');
  expect(usage()?.remaining).toBe(599);
});
