import { expect, test } from "vitest";
import type { Live } from "../src/live/live.ts";
import { StreamNotice } from "../src/pages/overview/StreamStatus.tsx";
import { mountRoot, root, show } from "./mounted.ts";

mountRoot();

test("the page shows why the service closed the live stream with 1011", async () => {
  const drop = { code: 1011, reason: "Too many replays run.", at: Date.parse("2026-03-01T12:00:00Z") };
  const live = { state: { kind: "waiting", until: 0, error: undefined }, drop } as unknown as Live;
  await show(<StreamNotice live={live} />);
  expect(root.textContent).toContain("(1011). Too many replays run.");
});
