import { RefusalNotice } from "@/administration/RefusalNotice.tsx";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Notice } from "@/components/Notice.tsx";
import { buildHref } from "@/router/route.ts";
import { countWords, isPlanOutdated, summarizePlan, toTextErrors } from "./planning.ts";
import type { Planning } from "./usePlanning.ts";

/** The result of the last plan or application, if it was an error or is complete. */
export function Outcome({ planning }: { planning: Planning }) {
  const { error, applied } = planning;
  if (applied) {
    return (
      <Notice kind="good" title={`Applied: ${summarizePlan(applied)}`}>
        <a href={buildHref("audit")}>See the changes in the audit log</a>
      </Notice>
    );
  }
  if (error === undefined) {
    return null;
  }
  if (isPlanOutdated(error)) {
    return <Outdated planning={planning} />;
  }
  const errors = toTextErrors(error);
  if (errors.length > 0 && error instanceof ApiError) {
    return (
      <Notice kind="bad" title={`The document has ${countWords(errors.length, "error")}, marked in its text.`}>
        <span>
          <code>{error.code}</code> · request <code>{error.requestId}</code>
        </span>
      </Notice>
    );
  }
  return <RefusalNotice error={error} />;
}

function Outdated({ planning }: { planning: Planning }) {
  return (
    <Notice kind="warn" title="The workspace changed after the plan was made. Nothing was applied.">
      <p>Your text is unchanged. Plan it again to see what it changes now.</p>
      <Button
        kind="primary"
        icon="refresh"
        busy={planning.busy === "planning"}
        onClick={() => void planning.makePlan()}
      >
        Plan again
      </Button>
    </Notice>
  );
}
