import { useState } from "preact/hooks";
import type { WarmQuery } from "@/api/queries.ts";
import { Notice } from "@/components/Notice.tsx";
import { summarizeError } from "../kqlErrors.ts";
import { ExtentInputs } from "../run/ExtentInputs.tsx";
import { ParameterInputs } from "../run/ParameterInputs.tsx";
import { buildAdHocCall, type Extent } from "../run/queryCall.ts";
import { RunForm } from "../run/RunForm.tsx";
import { useRun } from "../run/useRun.ts";
import { useSurface } from "../run/WarmRun.tsx";
import { buildTrialText } from "./declaredParameters.ts";

const NOTHING: ReadonlyMap<string, string> = new Map();

/** Runs the text of a draft as an ad-hoc query of the reader, who needs Workspace.WarmQuery.AdHoc. */
export function DraftTrial({ query }: { query: WarmQuery }) {
  const [values, setValues] = useState(NOTHING);
  const [extent, setExtent] = useState<Extent>({ timeRange: "", from: "", to: "", limit: "" });
  const run = useRun();
  const { connections, signals } = useSurface(query.surface);
  const ask = buildAdHocCall(buildTrialText(query, values), extent);
  return (
    <>
      <Notice kind="warn" title="This text is not approved.">
        It runs as your ad-hoc query, with your rights. Only you see the result; the query stays a draft.
      </Notice>
      <RunForm
        run={run}
        ask={ask}
        onRun={() => run.start(ask)}
        signals={signals}
        toldBefore={summarizeError(run.error)}
      >
        <ParameterInputs
          parameters={query.parameters}
          values={values}
          onChange={setValues}
          error={run.error}
          connections={connections}
          kql={query.kql}
        />
        <ExtentInputs extent={extent} onChange={setExtent} error={run.error} />
      </RunForm>
    </>
  );
}
