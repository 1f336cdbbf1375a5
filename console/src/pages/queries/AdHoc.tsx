import { useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import type { Route } from "@/router/route.ts";
import { go, href } from "@/router/route.ts";
import { useCan } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { KqlEditor } from "./KqlEditor.tsx";
import { keepKql, keptKql } from "./kept.ts";
import { kqlErrorOf, toldAtEditor } from "./kqlErrors.ts";
import { adHocAsk, type Extent } from "./run/ask.ts";
import { ExtentInputs } from "./run/ExtentInputs.tsx";
import { RunForm } from "./run/RunForm.tsx";
import { useRun } from "./run/useRun.ts";
import { extentIn } from "./run/WarmRun.tsx";

const START =
  "Telemetry\n| where Timestamp > ago(1h)\n| summarize messages = count() by ConnectionLookup, bin(Timestamp, 1m)\n| order by Timestamp asc";

/** A question of one's own in KQL. */
export function AdHoc({ route }: { route: Route }) {
  const [kql, setKql] = useState(() => keptKql() ?? START);
  const [extent, setExtent] = useState<Extent>(() => extentIn(route.query));
  const run = useRun();
  const manages = useCan("Workspace.WarmQuery.Manage");
  const ask = adHocAsk(kql, extent);
  const start = () => run.start(ask);
  const change = (text: string) => {
    keepKql(text);
    setKql(text);
  };
  return (
    <Page
      title="Ad-hoc query"
      description="KQL over the telemetry table, for you alone: nobody approves it, it changes nothing."
    >
      <RunForm
        run={run}
        ask={ask}
        onRun={start}
        disabled={kql.trim() === ""}
        before={<KqlEditor value={kql} onInput={change} onRun={start} error={kqlErrorOf(run.error)} />}
        toldBefore={toldAtEditor(run.error)}
        actions={
          manages && (
            <Button onClick={() => go(href("queries", ["-", "new"], { from: "ad-hoc" }))}>Save as a draft…</Button>
          )
        }
      >
        <ExtentInputs extent={extent} onChange={setExtent} error={run.error} />
      </RunForm>
    </Page>
  );
}
