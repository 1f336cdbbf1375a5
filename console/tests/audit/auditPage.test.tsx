import { expect, test, vi } from "vitest";
import Audit from "@/pages/audit/Audit.tsx";
import { parseHash } from "@/router/route.ts";
import { session } from "@/session/index.ts";
import { mountRoot, root, show } from "../mounted.ts";

mountRoot();

test("an invalid address shows an error instead of another chain", async () => {
  const request = vi.spyOn(session.api, "fetch").mockRejectedValue(new Error("offline"));
  await show(<Audit route={parseHash("#/audit/DomainEvent/line-1?record=3")} />);
  expect(root.querySelector("[role=alert]")?.textContent).toContain("unknown target “DomainEvent”");
  expect(root.textContent).not.toContain("Record");
  expect(request).not.toHaveBeenCalled();
});
