import { checkLookup, checkName } from "@/administration/fieldErrors.ts";
import type { FormRules } from "@/administration/useItemForm.ts";
import { type AlertRule, alertRulePath, type Condition, type Operator, type Severity } from "@/api/alerts.ts";
import { parseExactDefinitions, toExactNumber } from "@/api/exactNumbers.ts";
import { readObject, writeObject } from "@/proof/jsonText.ts";

export type ConditionKind = "column" | "any" | "none";

/** The form of a rule; numbers, lists and objects as text. */
export interface RuleDraft {
  lookup: string;
  name: string;
  description: string;
  severity: Severity;
  enabled: boolean;
  surface: string;
  kind: "threshold" | "absence";
  every: string;
  hold: string;
  runbookUrl: string;
  query: string;
  /** JSON. */
  parameters: string;
  timeRange: string;
  conditionKind: ConditionKind;
  column: string;
  operator: Operator;
  value: string;
  /** Column names, separated by commas. */
  groupBy: string;
  connections: string[];
  after: string;
}

export const NEW_RULE: RuleDraft = {
  lookup: "",
  name: "",
  description: "",
  severity: "warning",
  enabled: true,
  surface: "",
  kind: "threshold",
  every: "PT1M",
  hold: "PT0S",
  runbookUrl: "",
  query: "",
  parameters: "{}",
  timeRange: "PT15M",
  conditionKind: "column",
  column: "",
  operator: "gt",
  value: "",
  groupBy: "",
  connections: [],
  after: "PT10M",
};

const DURATION = /^P(?!$)(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?$/;
const DURATION_RULE = "must be an ISO 8601 duration, such as PT15M";

export const RULE_FORM: FormRules<AlertRule, RuleDraft> = {
  noun: "rule",
  labels: {
    lookup: "ID",
    name: "Name",
    description: "Description",
    severity: "Severity",
    enabled: "Enabled",
    surface: "Surface",
    kind: "Kind",
    every: "Evaluate every",
    hold: "Fires after",
    runbookUrl: "Runbook",
    query: "Query",
    parameters: "Parameters",
    timeRange: "Time range",
    conditionKind: "Condition",
    column: "Column",
    operator: "Operator",
    value: "Value",
    groupBy: "Group by",
    connections: "Connections",
    after: "Silent for",
  },
  path: ({ lookup }) => alertRulePath(lookup),
  parse: parseExactDefinitions,
  toDraft: (rule) => ({
    ...NEW_RULE,
    lookup: rule.lookup,
    name: rule.name,
    description: rule.description ?? "",
    severity: rule.severity,
    enabled: rule.enabled,
    surface: rule.surface,
    kind: rule.kind,
    every: rule.every,
    hold: rule.for,
    runbookUrl: rule.runbookUrl ?? "",
    ...(rule.kind === "absence"
      ? { connections: rule.connections ?? [], after: rule.after ?? "" }
      : {
          query: rule.query ?? "",
          parameters: writeObject(rule.parameters),
          timeRange: rule.timeRange ?? "",
          groupBy: (rule.groupBy ?? []).join(", "),
          ...toConditionDraft(rule.condition),
        }),
  }),
  toBody: (draft) => ({
    name: draft.name,
    description: draft.description === "" ? null : draft.description,
    severity: draft.severity,
    enabled: draft.enabled,
    surface: draft.surface,
    kind: draft.kind,
    every: draft.every.trim(),
    for: draft.hold.trim(),
    runbookUrl: draft.runbookUrl.trim() === "" ? null : draft.runbookUrl.trim(),
    ...(draft.kind === "absence"
      ? { connections: draft.connections, after: draft.after.trim() }
      : {
          query: draft.query,
          parameters: readObject(draft.parameters).value ?? {},
          timeRange: draft.timeRange.trim() === "" ? null : draft.timeRange.trim(),
          condition: toConditionBody(draft),
          groupBy: splitColumns(draft.groupBy),
        }),
  }),
  check: (draft, isNew) => ({
    lookup: isNew ? checkLookup(draft.lookup) : undefined,
    name: checkName(draft.name, "a name"),
    surface: draft.surface === "" ? "Choose a surface." : undefined,
    every: checkDuration(draft.every),
    for: checkDuration(draft.hold),
    ...(draft.kind === "absence" ? checkAbsence(draft) : checkThreshold(draft)),
  }),
  keyField: "lookup",
  canRecreate: true,
};

/** Returns the condition of a draft, in which a whole number beyond 2^53 is rounded. */
export function toCondition(draft: RuleDraft): Condition {
  return draft.conditionKind === "column"
    ? { column: draft.column, operator: draft.operator, value: Number(draft.value) }
    : { rows: draft.conditionKind };
}

function toConditionBody(draft: RuleDraft): Condition<unknown> {
  const condition = toCondition(draft);
  return "rows" in condition ? condition : { ...condition, value: toExactNumber(draft.value) };
}

/** Splits a list of columns; empty entries do not count. */
export function splitColumns(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

function toConditionDraft(condition: AlertRule["condition"]): Partial<RuleDraft> {
  if (!condition) {
    return {};
  }
  if ("rows" in condition) {
    return { conditionKind: condition.rows };
  }
  const { column, operator, value } = condition;
  return { conditionKind: "column", column, operator, value: String(value) };
}

function checkThreshold(draft: RuleDraft): Record<string, string | undefined> {
  const compares = draft.conditionKind === "column";
  return {
    query: draft.query === "" ? "Choose a query." : undefined,
    parameters: readObject(draft.parameters).problem,
    timeRange: draft.timeRange.trim() === "" ? undefined : checkDuration(draft.timeRange),
    "condition.column": compares && draft.column === "" ? "Enter a column of the query." : undefined,
    "condition.value": compares ? checkNumber(draft.value) : undefined,
  };
}

function checkAbsence(draft: RuleDraft): Record<string, string | undefined> {
  return {
    connections: draft.connections.length === 0 ? "Choose at least one connection." : undefined,
    after: checkDuration(draft.after),
  };
}

function checkDuration(text: string): string | undefined {
  return DURATION.test(text.trim()) ? undefined : DURATION_RULE;
}

function checkNumber(text: string): string | undefined {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? undefined : "must be a number";
}
