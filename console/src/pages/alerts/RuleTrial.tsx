import { useState } from "preact/hooks";
import { evaluateAlertRule, type Trial } from "@/api/alerts.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { useWork } from "@/components/useWork.ts";
import { Panel } from "@/shell/Page.tsx";
import { formatLabels } from "./activeAlerts.ts";

type Group = Trial["alerts"][number];

const COLUMNS: readonly Column<Group>[] = [
  { key: "labels", title: "Labels", value: ({ labels }) => formatLabels(labels) || "–" },
  { key: "value", title: "Value", type: "number", width: 120, value: ({ value }) => value },
  { key: "fires", title: "Would fire", width: 120, value: ({ wouldFire }) => (wouldFire ? "yes" : "no") },
];

/** Evaluates the stored rule once, without a change of its state. */
export function RuleTrial({ lookup }: { lookup: string }) {
  const [trial, setTrial] = useState<Trial>();
  const { busy, error, run } = useWork();
  return (
    <Panel
      title="Evaluate now"
      actions={
        <Button busy={busy} onClick={() => void run(async () => setTrial(await evaluateAlertRule(api, lookup)))}>
          Evaluate
        </Button>
      }
    >
      {error !== undefined && <ErrorNotice error={error} />}
      {trial === undefined && <p>Evaluates the saved rule once and shows what would fire. Nothing changes.</p>}
      {trial?.error && (
        <Notice kind="warn" title="The rule cannot be evaluated">
          {trial.error}
        </Notice>
      )}
      {trial && trial.error === null && (
        <DataTable
          label="Groups of the rule"
          columns={COLUMNS}
          rows={trial.alerts}
          rowKey={({ labels }) => JSON.stringify(labels)}
          empty={<Empty title="No group">The query returned no row to compare.</Empty>}
        />
      )}
    </Panel>
  );
}
