import { h, render } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import type { HistoryImport } from "../src/api/imports.ts";
import { previewImport } from "../src/pages/imports/calls.ts";
import { guessTimeColumn, inspectHead } from "../src/pages/imports/columns.ts";
import { describeProgress, describeResult } from "../src/pages/imports/ImportJob.tsx";
import { PreviewPanel } from "../src/pages/imports/PreviewPanel.tsx";
import { uploadFile } from "../src/pages/imports/upload.ts";
import { session } from "../src/session/index.ts";

afterEach(() => vi.unstubAllGlobals());

test("the start of a file tells its format, delimiter and columns", () => {
  expect(inspectHead("a.csv", 'datetime;"Flow rate";x\n2020;1;2')).toEqual({
    format: "csv",
    delimiter: ";",
    columns: ["datetime", "Flow rate", "x"],
  });
  expect(inspectHead("a.log", '{"ts":1,"x":2}\n')).toEqual({ format: "ndjson", delimiter: ",", columns: ["ts", "x"] });
  expect(inspectHead("a.bin", "PAR1\0").format).toBe("parquet");
  expect(guessTimeColumn(["x", "DateTime"])).toBe("DateTime");
  expect(guessTimeColumn(["x"])).toBe("x");
});

test("a file is sent in blocks, and a block that fails is sent again", async () => {
  const sent: { url: string; text: string }[] = [];
  let failures = 1;
  vi.stubGlobal("fetch", async (url: string, init: { body: Blob }) => {
    sent.push({ url, text: await init.body.text() });
    return new Response(null, { status: url.includes("MDAwMDAx") && failures-- > 0 ? 503 : 201 });
  });
  const progress: number[] = [];
  await uploadFile("http://host/files/x?sig=1", new Blob(["abcdefg"]), {
    onProgress: (bytes) => progress.push(bytes),
    signal: new AbortController().signal,
    blockBytes: 3,
    pause: async () => undefined,
  });
  expect(progress).toEqual([3, 6, 7]);
  expect(sent.map(({ text }) => text).slice(0, 4)).toEqual(["abc", "def", "def", "g"]);
  expect(sent[4]?.text).toBe(
    "<BlockList><Latest>MDAwMDAw</Latest><Latest>MDAwMDAx</Latest><Latest>MDAwMDAy</Latest></BlockList>",
  );
});

test("an upload that the service rejects ends with its reason", async () => {
  vi.stubGlobal("fetch", async () => Response.json({ detail: "The link has expired." }, { status: 403 }));
  const options = { onProgress: () => undefined, signal: new AbortController().signal };
  await expect(uploadFile("http://host/files/x?sig=1", new Blob(["a"]), options)).rejects.toThrow(
    "The link has expired.",
  );
});

test("the preview of an import shows whole numbers as they would be stored", async () => {
  const message = `{"timestamp":"t","deviceId":"d","messageId":"m","payload":{"serial":9007199254740993,"level":1.5}}`;
  const text = `{"columns":[],"problems":[],"messages":[${message}]}`;
  vi.spyOn(session.api, "fetch").mockResolvedValue(new Response(text));
  const root = document.createElement("div");
  render(h(PreviewPanel, { preview: await previewImport("i", { timestamp: "t" }) }), root);
  expect(root.textContent).toContain('{"serial":9007199254740993,"level":1.5}');
  render(null, root);
});

test("the preview of an import names the fields of the form in its problems", () => {
  const message = "the date-time has no time zone; set `mapping.timeZone`, not `mapping.other`";
  const root = document.createElement("div");
  render(h(PreviewPanel, { preview: { columns: [], messages: [], problems: [{ row: 2, message }] } }), root);
  const shown = "Row 2: the date-time has no time zone; set “Time zone”, not `mapping.other`";
  expect(root.querySelector("li")?.textContent).toBe(shown);
  render(null, root);
});

test("the result of an import names all three numbers", () => {
  const job = {
    startedAt: null,
    progress: { rows: 5, bytesDone: 1, bytesTotal: 2048 },
    accepted: 3,
    duplicates: 1,
    rejected: 1,
  };
  expect(describeResult(job as HistoryImport)).toBe("3 stored · 1 duplicate · 1 rejected");
  expect(describeProgress(job as HistoryImport)).toBe("waits for its start; its file must be uploaded first");
  expect(describeProgress({ ...job, startedAt: "2026" } as HistoryImport)).toContain("5 rows of 2");
});
