import { useState } from "preact/hooks";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Field, TextArea } from "@/components/Field.tsx";
import { Notice } from "@/components/Notice.tsx";
import type { PageProps } from "@/pageProps.ts";
import { Page } from "@/shell/Page.tsx";
import { ListActions } from "../ListActions.tsx";
import { ExtentInputs } from "./ExtentInputs.tsx";
import { findIgnoredInputs, formatPairs, parsePairs } from "./pairs.ts";
import { buildWarmCall, type Extent } from "./queryCall.ts";
import { RunForm } from "./RunForm.tsx";
import { useRun } from "./useRun.ts";
import { IgnoredInputs, parseExtent } from "./WarmRun.tsx";

/** The page for tokens that can run queries but not list them. A link with other inputs begins a new form. */
export default function LookupRun({ route }: PageProps) {
  return <LookupForm key={`${route.rest.join("/")}?${route.query}`} route={route} />;
}

function LookupForm({ route }: PageProps) {
  const [lookup, setLookup] = useState(route.rest[0] === "-" ? "" : route.rest.join("/"));
  const [text, setText] = useState(() => formatPairs(route.query));
  const [extent, setExtent] = useState<Extent>(() => parseExtent(route.query));
  const [open, setOpen] = useState(text !== "");
  const run = useRun();
  const pairs = parsePairs(text);
  const ask = buildWarmCall(lookup.trim(), pairs, extent);
  const failing = run.error instanceof ApiError ? run.error.errors.filter(({ field }) => field.startsWith("p.")) : [];
  return (
    <Page title="Queries" description="KQL queries over the plant's telemetry." actions={<ListActions />}>
      <Notice title="Your token can run queries, but not list them">
        <p>Enter the ID (lookup) or the API path of a query. To list queries, you need Workspace.Catalog.Read.</p>
      </Notice>
      <IgnoredInputs
        title="The address contains inputs that this page cannot use"
        names={findIgnoredInputs(route.query)}
      />
      <RunForm
        run={run}
        ask={ask}
        onRun={() => run.start(ask)}
        disabled={lookup.trim() === ""}
        actions={!open && <Button onClick={() => setOpen(true)}>Parameters…</Button>}
      >
        <Field label="ID or API path" mono value={lookup} onInput={setLookup} placeholder="pressure-5m" />
        <ExtentInputs extent={extent} onChange={setExtent} error={run.error} />
        {open && (
          <TextArea
            label="Parameters"
            hint="one per line: name=value; spaces in a value count"
            rows={3}
            mono
            value={text}
            onInput={setText}
            error={failing.map(({ field, message }) => `${field.slice(2)}: ${message}`).join("; ")}
          />
        )}
      </RunForm>
    </Page>
  );
}
