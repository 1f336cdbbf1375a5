import { changeColumns } from "@/administration/ListedItems.tsx";
import type { AlertRule } from "@/api/alerts.ts";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import type { Resource } from "@/components/useResource.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { Panel } from "@/shell/Page.tsx";
import { AlertStatus, SeverityBadge } from "./AlertTable.tsx";

const COLUMNS: readonly Column<AlertRule>[] = [
  {
    key: "state",
    title: "State",
    width: 110,
    value: ({ state, enabled }) => (enabled ? state : "disabled"),
    render: ({ state, enabled }) => (enabled ? <AlertStatus state={state} /> : "disabled"),
  },
  {
    key: "severity",
    title: "Severity",
    width: 100,
    value: ({ severity }) => severity,
    render: (rule) => <SeverityBadge {...rule} />,
  },
  { key: "name", title: "Name", value: ({ name }) => name },
  { key: "lookup", title: "ID", type: "code", width: 140, value: ({ lookup }) => lookup },
  { key: "surface", title: "Surface", width: 130, value: ({ surface }) => surface },
  { key: "source", title: "Query or connections", value: ({ query, connections }) => query ?? connections?.join(", ") },
  { key: "every", title: "Interval", type: "code", width: 90, value: ({ every }) => every },
  {
    key: "evaluated",
    title: "Last evaluation",
    type: "time",
    width: 164,
    value: ({ lastEvaluatedAt }) => lastEvaluatedAt,
  },
  ...changeColumns<AlertRule>(),
];

/** All rules; each row opens its rule. */
export function RuleTab({ rules }: { rules: Resource<AlertRule[]> }) {
  return (
    <Loaded resource={rules} rows={6}>
      {(shown) => (
        <Panel>
          <DataTable
            label="Alert rules"
            columns={COLUMNS}
            rows={shown}
            rowKey={({ lookup }) => lookup}
            onOpen={({ lookup }) => navigate(buildHref("alerts", [lookup]))}
            empty={<Empty title="No rules">Add a rule: it raises an alert when a value leaves its limits.</Empty>}
          />
        </Panel>
      )}
    </Loaded>
  );
}
