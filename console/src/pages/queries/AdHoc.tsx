import { useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import type { PageProps } from "@/pageProps.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { KqlEditor } from "./KqlEditor.tsx";
import { summarizeError, toKqlError } from "./kqlErrors.ts";
import { recallKql, rememberKql } from "./rememberedKql.ts";
import { ExtentInputs } from "./run/ExtentInputs.tsx";
import { buildAdHocCall, type Extent } from "./run/queryCall.ts";
import { RunForm } from "./run/RunForm.tsx";
import { useRun } from "./run/useRun.ts";
import { parseExtent } from "./run/WarmRun.tsx";

const START =
  "Telemetry\n| where Timestamp > ago(1h)\n| summarize messages = count() by ConnectionLookup, bin(Timestamp, 1m)\n| order by Timestamp asc";

/** The editor for ad-hoc KQL queries. */
export default function AdHoc({ route }: PageProps) {
  const [first] = useState(() => recallKql() ?? START);
  const [kql, setKql] = useState(first);
  const [extent, setExtent] = useState<Extent>(() => parseExtent(route.query));
  const run = useRun();
  const manages = useHasRights("Workspace.WarmQuery.Manage");
  const ask = buildAdHocCall(kql, extent);
  const start = () => run.start(ask);
  // Other pages keep the text; only a closed tab loses it.
  useUnsavedWarning(kql !== (run.asked?.body?.query ?? first), "tab");
  const change = (text: string) => {
    rememberKql(text);
    setKql(text);
  };
  return (
    <Page
      title="Ad-hoc query"
      description="KQL over the telemetry table. Ad-hoc queries need no approval and change nothing."
    >
      <RunForm
        run={run}
        ask={ask}
        onRun={start}
        disabled={kql.trim() === ""}
        before={(buttons) => (
          <KqlEditor value={kql} onInput={change} onRun={start} error={toKqlError(run.error)} actions={buttons} />
        )}
        toldBefore={summarizeError(run.error)}
        actions={
          manages && (
            <Button onClick={() => navigate(buildHref("queries", ["-", "new"], { from: "ad-hoc" }))}>
              Save as a draft…
            </Button>
          )
        }
      >
        <ExtentInputs extent={extent} onChange={setExtent} error={run.error} />
      </RunForm>
    </Page>
  );
}
