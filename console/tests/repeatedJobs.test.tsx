import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { ApiError } from "../src/api/problem.ts";
import { subscribeToToasts, type Toast } from "../src/components/toasts.ts";
import { Start } from "../src/pages/downloads/Start.tsx";
import { NewImport } from "../src/pages/imports/NewImport.tsx";
import * as upload from "../src/pages/imports/upload.ts";
import { BundleForm } from "../src/pages/scopes/BundleForm.tsx";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { chooseFile, findButton, mountRoot, press, root, show, submit } from "./mounted.ts";

afterEach(() => vi.restoreAllMocks());

mountRoot();

const LISTS = { scopes: [{ target: "PlatformConfig", scopeKey: null }], dataConnections: [], surfaces: [] };
const NOT_FOUND = new ApiError({ status: 404, code: "IMPORT_NOT_FOUND", detail: "" });
const LOST = new ApiError({ status: 0, code: "UNREACHABLE", detail: "" });

function loseReplies() {
  signIn();
  vi.spyOn(session.api, "get").mockResolvedValue(LISTS as never);
  return vi.spyOn(session.api, "post").mockRejectedValue(LOST);
}

/** Attempts the same request twice, and expects one key. */
async function expectOneKey(post: ReturnType<typeof loseReplies>, attempt: () => Promise<void>) {
  for (const attempts of [1, 2]) {
    await attempt();
    await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(attempts));
    await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  }
  const [first, second] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second).toBe(first);
}

test("a download whose reply was lost is started once", async () => {
  const post = loseReplies();
  await show(<Start from={{ kind: "connection", connection: "rig", surface: "" }} onStarted={() => undefined} />);
  await expectOneKey(post, submit);
});

test("a bundle whose reply was lost is started once", async () => {
  const post = loseReplies();
  await show(<BundleForm onStarted={() => undefined} />);
  await vi.waitFor(() => expect(root.querySelector("input[type=checkbox]")).not.toBeNull());
  await act(() => root.querySelector<HTMLInputElement>("input[type=checkbox]")?.click());
  await expectOneKey(post, submit);
});

test("a download of a lost reply that is complete is not reported as started", async () => {
  const post = loseReplies();
  let toasts: readonly Toast[] = [];
  subscribeToToasts((now) => {
    toasts = now;
  });
  await show(<Start from={{ kind: "connection", connection: "rig", surface: "" }} onStarted={() => undefined} />);
  await submit();
  await vi.waitFor(() => expect(root.querySelector("[role=alert]")).not.toBeNull());
  post.mockResolvedValue({ status: "completed" });
  await submit();
  await vi.waitFor(() => expect(toasts.at(-1)?.text).toBe("Your earlier attempt started the download; it is complete"));
});

test("an import whose reply was lost is created once", async () => {
  const post = loseReplies();
  await show(<NewImport connection="rig" onChanged={() => undefined} />);
  await chooseFile(new File(["time\n2026-01-05T08:00:00Z\n"], "rows.csv"));
  await vi.waitFor(() => expect(findButton("Upload and preview")?.disabled).toBe(false));
  await expectOneKey(post, () => press("Upload and preview"));
});

test.each([
  ["for the same import", async () => ({ status: "pending" }), 1],
  ["for another import if that one was cancelled", async () => ({ status: "cancelled" }), 2],
  ["for another import if that one has expired", () => Promise.reject(NOT_FOUND), 2],
])("an upload that fails is repeated %s", async (_, fetchJob, created) => {
  const post = loseReplies();
  vi.spyOn(session.api, "get").mockImplementation((path: string) =>
    path.endsWith("/i") ? (fetchJob() as never) : Promise.resolve(LISTS as never),
  );
  post.mockImplementation((path: string) =>
    Promise.resolve(
      (path.endsWith("/preview") ? { columns: [], messages: [], problems: [] } : { importId: "i" }) as never,
    ),
  );
  const send = vi.spyOn(upload, "uploadFile").mockRejectedValueOnce(new Error("interrupted")).mockResolvedValue();
  await show(<NewImport connection="rig" onChanged={() => undefined} />);
  await chooseFile(new File(["time\n2026-01-05T08:00:00Z\n"], "rows.csv"));
  for (const uploads of [1, 2]) {
    await vi.waitFor(() => expect(findButton("Upload and preview")?.disabled).toBe(false));
    await press("Upload and preview");
    await vi.waitFor(() => expect(send).toHaveBeenCalledTimes(uploads));
  }
  await vi.waitFor(() => expect(findButton("Start import")?.disabled).toBe(false));
  expect(post.mock.calls.filter(([path]) => !path.endsWith("/preview"))).toHaveLength(created);
});
