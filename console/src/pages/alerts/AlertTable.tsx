import { useState } from "preact/hooks";
import type { Alert, AlertState, RuleState, Severity } from "@/api/alerts.ts";
import { Badge, Status, type Tone } from "@/components/Badge.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { AlertDialog } from "./AlertDialog.tsx";
import { formatLabels } from "./activeAlerts.ts";

const STATES: Record<AlertState | RuleState, Tone> = {
  firing: "bad",
  error: "warn",
  pending: "warn",
  resolved: "good",
  ok: "good",
};
const SEVERITIES: Record<Severity, Tone> = { critical: "bad", warning: "warn", info: "neutral" };

/** The state of an alert or a rule. */
export function AlertStatus({ state }: { state: AlertState | RuleState }) {
  return <Status tone={STATES[state]}>{state}</Status>;
}

/** The severity of an alert or a rule. */
export function SeverityBadge({ severity }: { severity: Severity }) {
  return <Badge tone={SEVERITIES[severity]}>{severity}</Badge>;
}

const COLUMNS: readonly Column<Alert>[] = [
  {
    key: "state",
    title: "State",
    width: 110,
    value: ({ state }) => state,
    render: (alert) => <AlertStatus {...alert} />,
  },
  {
    key: "severity",
    title: "Severity",
    width: 100,
    value: ({ severity }) => severity,
    render: (alert) => <SeverityBadge {...alert} />,
  },
  { key: "name", title: "Rule", value: ({ name }) => name },
  { key: "labels", title: "Labels", value: ({ labels }) => formatLabels(labels) },
  { key: "value", title: "Value", type: "number", width: 120, value: ({ value }) => value },
  { key: "started", title: "Started", type: "time", width: 164, value: ({ startedAt }) => startedAt },
  { key: "acknowledged", title: "Acknowledged by", width: 150, value: ({ acknowledgedBy }) => acknowledgedBy },
];
const RESOLVED: Column<Alert> = {
  key: "resolved",
  title: "Resolved",
  type: "time",
  width: 164,
  value: ({ resolvedAt }) => resolvedAt,
};

interface Props {
  label: string;
  alerts: readonly Alert[];
  empty: { title: string; text: string };
  /** Whether to show the end of each alert. */
  withEnd?: boolean;
  onChanged: () => void;
  /** Called when the end of the list is visible. */
  onEnd?: () => void;
}

/** A list of alerts; each row opens its alert. */
export function AlertTable({ label, alerts, empty, withEnd = false, onChanged, onEnd }: Props) {
  const [opened, setOpened] = useState<Alert>();
  return (
    <>
      <DataTable
        label={label}
        columns={withEnd ? [...COLUMNS, RESOLVED] : COLUMNS}
        rows={alerts}
        rowKey={({ id }) => id}
        onOpen={setOpened}
        {...(onEnd ? { onEnd } : {})}
        empty={<Empty title={empty.title}>{empty.text}</Empty>}
      />
      {opened && <AlertDialog alert={opened} onClose={() => setOpened(undefined)} onChanged={onChanged} />}
    </>
  );
}
