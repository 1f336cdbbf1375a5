import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { NewImport } from "../src/pages/imports/NewImport.tsx";
import * as upload from "../src/pages/imports/upload.ts";
import { session } from "../src/session/index.ts";
import { chooseFile, findButton, mountRoot, press, root, show } from "./mounted.ts";

mountRoot();

test("an import starts only with the mapping that was previewed", async () => {
  const preview = { columns: ["time", "at", "pressure"], messages: [], rows: 0, problems: [] };
  vi.spyOn(upload, "uploadFile").mockResolvedValue(undefined as never);
  vi.spyOn(session.api, "get").mockResolvedValue({ dataConnections: [] });
  vi.spyOn(session.api, "post").mockImplementation((path: string) =>
    Promise.resolve((path.endsWith("/preview") ? preview : { importId: "i", uploadUrl: "" }) as never),
  );
  await show(<NewImport connection="c" onChanged={() => undefined} />);
  await chooseFile(new File(["time,at,pressure\n2026-01-05T08:00:00Z,2026-01-05T09:00:00Z,4\n"], "rows.csv"));
  await vi.waitFor(() => expect(findButton("Upload and preview")?.disabled).toBe(false));
  await press("Upload and preview");
  await vi.waitFor(() => expect(findButton("Start import")?.disabled).toBe(false));
  await act(() => {
    const column = [...root.querySelectorAll("select")].find((each) => each.value === "time");
    if (column) column.value = "at";
    column?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect(findButton("Start import")).toBeUndefined();
  await press("Preview again");
  await vi.waitFor(() => expect(findButton("Start import")?.disabled).toBe(false));
});

test("a click on the field for the file empties it, so that the same file can be chosen again", async () => {
  vi.spyOn(session.api, "get").mockResolvedValue({ dataConnections: [] });
  await show(<NewImport connection="c" onChanged={() => undefined} />);
  const input = root.querySelector<HTMLInputElement>("input[type=file]");
  let isEmptied = false;
  Object.defineProperty(input, "value", {
    set: (text) => {
      isEmptied = text === "";
    },
  });
  await act(() => input?.click());
  expect(isEmptied).toBe(true);
});
