import { render } from "preact";
import { expect, test } from "vitest";
import { JobCard } from "../src/components/JobCard.tsx";
import type { BackgroundJob } from "../src/components/jobs.ts";
import { mountRoot, root } from "./mounted.ts";

mountRoot();

test.each([
  ["SCRATCH_FULL: The disk is full.", "SCRATCH_FULL", "The disk is full."],
  ["PUMP_A: the log contains the reason.", null, "PUMP_A: the log contains the reason."],
])("a failed job is shown with its reason, without the code", (error, errorCode, shown) => {
  const job = { status: "failed", error, errorCode, createdAt: "", expiresAt: "" } as BackgroundJob;
  const progress = { label: "", done: 0, total: 0, text: "" };
  render(
    <JobCard job={job} title="rig" facts="" progress={progress} help="" totals="" onCancel={async () => {}}>
      {""}
    </JobCard>,
    root,
  );
  expect(root.querySelector("article strong")?.textContent).toBe(shown);
});
