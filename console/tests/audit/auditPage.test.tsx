import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { ApiError } from "@/api/problem.ts";
import * as toasts from "@/components/toasts.ts";
import Audit from "@/pages/audit/Audit.tsx";
import { parseHash } from "@/router/route.ts";
import { session } from "@/session/index.ts";
import { makeReply, signIn } from "../amendments/pages.ts";
import { findButton, mountRoot, press, root, show, typeInto } from "../mounted.ts";

afterEach(() => {
  window.location.hash = "";
});

mountRoot();

test("an invalid address shows an error instead of another chain", async () => {
  const request = vi.spyOn(session.api, "fetch").mockRejectedValue(new Error("offline"));
  await show(<Audit route={parseHash("#/audit/DomainEvent/line-1?record=3")} />);
  expect(root.querySelector("[role=alert]")?.textContent).toContain("unknown target “DomainEvent”");
  expect(root.textContent).not.toContain("Record");
  expect(request).not.toHaveBeenCalled();
});

test("a late reply to a written event does not lead the user away from another page", async () => {
  signIn(["Workspace.Provenance.Read", "Workspace.Provenance.Write"]);
  vi.spyOn(session.api, "get").mockResolvedValue({ scopes: [], cursor: null, size: 0 });
  vi.spyOn(session.api, "request").mockResolvedValue(makeReply([]));
  let reply: () => void = () => undefined;
  const toast = vi.spyOn(toasts, "showToast");
  const written = { RecordID: "000000000007" };
  vi.spyOn(session.api, "post").mockImplementation(() => new Promise((resolve) => (reply = () => resolve(written))));
  await show(<Audit route={parseHash("#/audit/DomainEvents/line-1")} />);
  await press("Write an event");
  for (const field of [...root.querySelectorAll<HTMLInputElement>("dialog input")].slice(0, 3)) {
    await typeInto(field, "x");
  }
  await press("Write event");
  await press("Cancel");
  await show(null);
  window.location.hash = "#/overview";
  await act(async () => reply());
  await vi.waitFor(() => expect(toast).toHaveBeenCalledOnce());
  expect(window.location.hash).toBe("#/overview");
});

test("the repetition of a failed list keeps the start of the list", async () => {
  signIn(["Workspace.Provenance.Read"]);
  vi.spyOn(session.api, "get").mockResolvedValue({ scopes: [], cursor: null, size: 0 });
  const fault = new ApiError({ status: 503, code: "STORAGE_UNAVAILABLE", detail: "The store does not respond" });
  const request = vi.spyOn(session.api, "request").mockRejectedValue(fault);
  window.location.hash = "#/audit/DomainEvents/line-1?at=50";
  await show(<Audit route={parseHash(window.location.hash)} />);
  await vi.waitFor(() => expect(root.textContent).toContain("The store does not respond"));
  request.mockClear();
  await act(() => findButton("Retry")?.click());
  await vi.waitFor(() => expect(request).toHaveBeenCalled());
  expect(window.location.hash).toBe("#/audit/DomainEvents/line-1?at=50");
});
