import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { WarmQuery } from "@/api/queries.ts";
import { Notice } from "@/components/Notice.tsx";
import { summarizeError } from "../kqlErrors.ts";
import { ExtentInputs } from "../run/ExtentInputs.tsx";
import { ParameterInputs } from "../run/ParameterInputs.tsx";
import { buildAdHocCall, type Extent, type QueryCall } from "../run/queryCall.ts";
import { RunForm } from "../run/RunForm.tsx";
import { type Run, useRun } from "../run/useRun.ts";
import { useSurface } from "../run/WarmRun.tsx";
import { buildTrialText } from "./declaredParameters.ts";

const NOTHING: ReadonlyMap<string, string> = new Map();

/** What a trial needs of a query, stored or typed. */
export type TrialQuery = Pick<WarmQuery, "surface" | "kql" | "parameters">;

/** A text that runs as an ad-hoc query of the reader, with its inputs. */
export interface Trial {
  query: TrialQuery;
  values: ReadonlyMap<string, string>;
  setValues: (values: ReadonlyMap<string, string>) => void;
  extent: Extent;
  setExtent: (extent: Extent) => void;
  run: Run;
  ask: QueryCall;
  start: () => void;
}

/** Holds the inputs and the result of a trial; the reader needs Workspace.WarmQuery.AdHoc to start it. */
export function useTrial(query: TrialQuery): Trial {
  const [values, setValues] = useState(NOTHING);
  const [extent, setExtent] = useState<Extent>({ timeRange: "", from: "", to: "", limit: "" });
  const run = useRun();
  const ask = buildAdHocCall(buildTrialText(query, values), extent);
  return { query, values, setValues, extent, setExtent, run, ask, start: () => run.start(ask) };
}

/** Runs the text of a draft as an ad-hoc query of the reader, who needs Workspace.WarmQuery.AdHoc. */
export function DraftTrial({ query }: { query: WarmQuery }) {
  return (
    <TrialForm trial={useTrial(query)}>
      It runs as your ad-hoc query, with your rights. Only you see the result; the query stays a draft.
    </TrialForm>
  );
}

/** The inputs and the result of a trial, under a banner with its consequences. */
export function TrialForm({ trial, children }: { trial: Trial; children: ComponentChildren }) {
  const { query, run, ask } = trial;
  const { connections, signals } = useSurface(query.surface);
  return (
    <>
      <Notice kind="warn" title="This text is not approved.">
        {children}
      </Notice>
      <RunForm run={run} ask={ask} onRun={trial.start} signals={signals} toldBefore={summarizeError(run.error)}>
        <ParameterInputs
          parameters={query.parameters}
          values={trial.values}
          onChange={trial.setValues}
          error={run.error}
          connections={connections}
          kql={query.kql}
        />
        <ExtentInputs extent={trial.extent} onChange={trial.setExtent} error={run.error} />
      </RunForm>
    </>
  );
}
