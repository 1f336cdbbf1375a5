import { afterEach, expect, test } from "vitest";
import { clearUsage, getUsage, recordUsage, subscribeToUsage } from "../src/api/usage.ts";

afterEach(clearUsage);

function told(policy: string, standing: string): void {
  recordUsage(new Headers({ "RateLimit-Policy": policy, RateLimit: standing }));
}

test("the headers of a reply say where the caller stands", () => {
  let changes = 0;
  const end = subscribeToUsage(() => {
    changes += 1;
  });
  told('"default";q=600;w=60', '"default";r=599;t=1');
  end();
  expect(getUsage()).toMatchObject({ limit: 600, windowSeconds: 60, remaining: 599, resetSeconds: 1 });
  told('"default";q=600;w=60', '"default";r=598;t=1');
  expect([changes, getUsage()?.remaining]).toEqual([1, 598]);
});

test("a reply that does not tell changes nothing", () => {
  told('"default";q=600;w=60', '"default";r=599;t=1');
  recordUsage(new Headers());
  told("nonsense", "r=1");
  told('"default";q=600', '"default";r=1;t=1');
  expect(getUsage()?.remaining).toBe(599);
});
