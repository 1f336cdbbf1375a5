import { afterEach, expect, test, vi } from "vitest";
import type { HistoryImport } from "../src/api/imports.ts";
import { ApiError } from "../src/api/problem.ts";
import { ImportJob } from "../src/pages/imports/ImportJob.tsx";
import { session } from "../src/session/index.ts";
import { findButton, mountRoot, press, root, show } from "./mounted.ts";

afterEach(() => vi.restoreAllMocks());

mountRoot();

const MAPPING = {
  ...{ timestamp: "zeit", timestampFormat: "rfc3339", device: null, messageId: null, columns: ["p"] },
  ...{ delimiter: ";", decimal: ",", timeZone: "Europe/Berlin" },
} as const;
const WAITING = {
  ...{ importId: "i", connection: "rig", fileName: "a.csv", format: "csv", mapping: MAPPING, status: "pending" },
  ...{ createdAt: "2026-01-01T08:00:00Z", startedAt: null, files: [], error: null, errorCode: null },
  progress: { rows: 0, bytesDone: null, bytesTotal: null },
} as unknown as HistoryImport;

const showJob = (job: HistoryImport, onStarted = () => undefined) =>
  show(<ImportJob job={job} onCancel={async () => undefined} onStarted={onStarted} />);
const readTimes = () => [...root.querySelectorAll("footer time")].map((each) => each.getAttribute("datetime"));

test("an import shows its start, and its creation until then", async () => {
  await showJob(WAITING);
  expect(root.querySelector("footer")?.textContent).toMatch(/^created /);
  expect(readTimes()[0]).toBe("2026-01-01T08:00:00Z");
  await showJob({ ...WAITING, status: "running", startedAt: "2026-01-01T09:00:00Z" });
  expect(root.querySelector("footer")?.textContent).toMatch(/^started /);
  expect(readTimes()[0]).toBe("2026-01-01T09:00:00Z");
  expect(findButton("Preview and start")).toBeUndefined();
});

test("an uploaded import is previewed and started with its stored mapping, without its file", async () => {
  const preview = { columns: ["zeit", "p"], messages: [], problems: [] };
  const post = vi.spyOn(session.api, "post").mockResolvedValue(preview as never);
  const onStarted = vi.fn();
  await showJob(WAITING, onStarted);
  await press("Preview and start");
  await vi.waitFor(() => expect(findButton("Start import")?.disabled).toBe(false));
  await press("Start import");
  await vi.waitFor(() => expect(onStarted).toHaveBeenCalled());
  const { device: _, messageId: __, ...mapping } = MAPPING;
  expect(post.mock.calls.map(([path, body]) => [path, body])).toEqual([
    ["/oi-api/imports/i/preview", { mapping }],
    ["/oi-api/imports/i/start", { mapping }],
  ]);
});

test("an import without its file names the way out that ends no running upload, and cannot be started", async () => {
  const missing = new ApiError({ status: 409, code: "IMPORT_NOT_UPLOADED", detail: "send the file to `uploadUrl`" });
  vi.spyOn(session.api, "post").mockRejectedValue(missing);
  await showJob(WAITING);
  await press("Preview and start");
  await vi.waitFor(() =>
    expect(root.querySelector("[role=alert]")?.textContent).toContain("If no page uploads it any more"),
  );
  expect(findButton("Start import")).toBeUndefined();
});
