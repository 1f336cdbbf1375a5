import css from "@/administration/Administration.module.css";
import type { ItemForm } from "@/administration/useItemForm.ts";
import type { AlertRule, Operator, Severity } from "@/api/alerts.ts";
import { fetchConnectionItems } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { fetchSurfaceItems } from "@/api/surfaces.ts";
import { ChoiceList } from "@/components/ChoiceList.tsx";
import { Checkbox, Field, Select, TextArea } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { fetchWarmQueries } from "@/pages/queries/catalogQueries.ts";
import type { ConditionKind, RuleDraft } from "./ruleDraft.ts";

interface Props {
  form: ItemForm<AlertRule, RuleDraft>;
}

const SEVERITIES: readonly { value: Severity; label: string }[] = [
  { value: "info", label: "info" },
  { value: "warning", label: "warning" },
  { value: "critical", label: "critical" },
];
const KINDS = [
  { value: "threshold", label: "Threshold: the rows of a query" },
  { value: "absence", label: "Absence: connections without messages" },
] as const;
const CONDITIONS: readonly { value: ConditionKind; label: string }[] = [
  { value: "column", label: "compare a column with a value" },
  { value: "any", label: "the query returns rows" },
  { value: "none", label: "the query returns no row" },
];
const OPERATORS: readonly { value: Operator; label: string }[] = [
  { value: "gt", label: "above (gt)" },
  { value: "ge", label: "at least (ge)" },
  { value: "lt", label: "below (lt)" },
  { value: "le", label: "at most (le)" },
  { value: "eq", label: "equal to (eq)" },
  { value: "ne", label: "not equal to (ne)" },
];

/** The fields of a rule. */
export function RuleFields({ form }: Props) {
  const { draft, change, message, isNew } = form;
  return (
    <>
      <div class={css.fields}>
        <Field
          label="ID"
          mono
          disabled={!isNew}
          hint={
            isNew
              ? "Used in addresses and in the API (lookup). Letters, digits, - and _ are allowed. It cannot be changed later"
              : "Used in addresses and in the API (lookup). It cannot be changed"
          }
          value={draft.lookup}
          onInput={(lookup) => change({ lookup })}
          error={message("lookup")}
        />
        <Field label="Name" value={draft.name} onInput={(name) => change({ name })} error={message("name")} />
        <Select
          label="Severity"
          value={draft.severity}
          options={SEVERITIES}
          onChange={(severity) => change({ severity })}
          error={message("severity")}
        />
        <SurfaceChoice form={form} />
        <Select
          label="Kind"
          value={draft.kind}
          options={KINDS}
          onChange={(kind) => change({ kind })}
          error={message("kind")}
        />
        <Field
          label="Evaluate every"
          mono
          hint="ISO 8601 duration from 15 seconds (PT15S) to one day (P1D)"
          value={draft.every}
          onInput={(every) => change({ every })}
          error={message("every")}
        />
        <Field
          label="Fires after"
          mono
          hint="how long the condition must hold, such as PT5M (5 minutes); PT0S fires at once"
          value={draft.hold}
          onInput={(hold) => change({ hold })}
          error={message("for")}
        />
        <Field
          label="Runbook"
          hint="optional: address of the instructions"
          value={draft.runbookUrl}
          onInput={(runbookUrl) => change({ runbookUrl })}
          error={message("runbookUrl")}
        />
      </div>
      <Field
        label="Description"
        value={draft.description}
        onInput={(description) => change({ description })}
        error={message("description")}
      />
      <Checkbox
        label="Enabled: the rule is evaluated"
        checked={draft.enabled}
        onChange={(enabled) => change({ enabled })}
      />
      {draft.kind === "absence" ? <AbsenceFields form={form} /> : <ThresholdFields form={form} />}
    </>
  );
}

function SurfaceChoice({ form }: Props) {
  const { draft, change, message } = form;
  const surfaces = useResource((signal) => fetchSurfaceItems(api, signal), []);
  const known = (surfaces.data ?? []).map(({ lookup, name }) => ({ value: lookup, label: name }));
  return (
    <Select
      label="Surface"
      value={draft.surface}
      options={withCurrent(known, draft.surface, "Choose a surface")}
      onChange={(surface) => change({ surface })}
      error={message("surface")}
    />
  );
}

function ThresholdFields({ form }: Props) {
  const { draft, change, message } = form;
  const queries = useResource((signal) => fetchWarmQueries(signal), []);
  const known = (queries.data ?? []).map(({ lookup, name, approval }) => ({
    value: lookup,
    label: approval ? name : `${name} (draft)`,
  }));
  const columns = queries.data?.find(({ lookup }) => lookup === draft.query)?.schema?.columns ?? [];
  const names = columns.map(({ name }) => name).join(", ");
  const compares = draft.conditionKind === "column";
  return (
    <>
      <div class={css.fields}>
        <Select
          label="Query"
          value={draft.query}
          options={withCurrent(known, draft.query, "Choose a query")}
          onChange={(query) => change({ query })}
          error={message("query")}
        />
        <Field
          label="Time range"
          mono
          hint="how far back the query reads at each evaluation, such as PT15M; empty: all rows"
          value={draft.timeRange}
          onInput={(timeRange) => change({ timeRange })}
          error={message("timeRange")}
        />
        <Select
          label="Condition"
          value={draft.conditionKind}
          options={CONDITIONS}
          onChange={(conditionKind) => change({ conditionKind })}
          error={message("condition.rows")}
        />
        {compares && (
          <>
            <Field
              label="Column"
              mono
              {...(names === "" ? {} : { hint: names })}
              value={draft.column}
              onInput={(column) => change({ column })}
              error={message("condition.column")}
            />
            <Select
              label="Operator"
              value={draft.operator}
              options={OPERATORS}
              onChange={(operator) => change({ operator })}
              error={message("condition.operator")}
            />
            <Field
              label="Value"
              mono
              value={draft.value}
              onInput={(value) => change({ value })}
              error={message("condition.value")}
            />
          </>
        )}
        {draft.conditionKind !== "none" && (
          <Field
            label="Group by"
            mono
            hint="columns, separated by commas; each combination of their values has its own alert"
            value={draft.groupBy}
            onInput={(groupBy) => change({ groupBy })}
            error={message("groupBy")}
          />
        )}
      </div>
      <TextArea
        label="Parameters"
        mono
        rows={3}
        hint="JSON object with values of the query's parameters"
        value={draft.parameters}
        onInput={(parameters) => change({ parameters })}
        error={message("parameters")}
      />
    </>
  );
}

function AbsenceFields({ form }: Props) {
  const { draft, change, message } = form;
  const resource = useResource((signal) => fetchConnectionItems(api, signal), []);
  return (
    <>
      <div class={css.fields}>
        <Field
          label="Silent for"
          mono
          hint="time without a message, such as PT10M (10 minutes)"
          value={draft.after}
          onInput={(after) => change({ after })}
          error={message("after")}
        />
      </div>
      <Loaded resource={resource} rows={3}>
        {(connections) => (
          <ChoiceList
            label="Connections"
            options={connections.map(({ lookup, name }) => ({ value: lookup, label: name, note: lookup }))}
            chosen={draft.connections}
            onChange={(chosen) => change({ connections: chosen })}
            error={message("connections")}
            hint="Each connection without messages has its own alert"
            empty="The workspace has no connections yet."
          />
        )}
      </Loaded>
    </>
  );
}

interface Option {
  value: string;
  label: string;
}

/** Returns the options with the current value, which may no longer exist, and a first entry without a value. */
function withCurrent(known: readonly Option[], current: string, none: string): Option[] {
  const missing = current !== "" && known.every(({ value }) => value !== current);
  return [{ value: "", label: none }, ...known, ...(missing ? [{ value: current, label: current }] : [])];
}
