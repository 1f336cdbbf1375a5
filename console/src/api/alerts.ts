import { type Client, formatPath } from "./client.ts";
import { fetchAllItems, type ItemChange, type StoredItem } from "./items.ts";

export type Severity = "info" | "warning" | "critical";
export type AlertState = "pending" | "firing" | "resolved";
export type RuleState = "ok" | "pending" | "firing" | "error";
export type Operator = "gt" | "ge" | "lt" | "le" | "eq" | "ne";

/** A comparison of a column with a value, or a condition on the number of rows. */
export type Condition<Value = number> = { column: string; operator: Operator; value: Value } | { rows: "any" | "none" };

/** A rule with the result of its newest evaluation; which properties it has depends on its kind. */
export interface AlertRule extends StoredItem, ItemChange {
  lookup: string;
  name: string;
  description: string | null;
  severity: Severity;
  enabled: boolean;
  surface: string;
  kind: "threshold" | "absence";
  every: string;
  for: string;
  runbookUrl: string | null;
  query?: string;
  parameters?: Record<string, unknown>;
  timeRange?: string | null;
  /** The value is text if it is a whole number beyond 2^53. */
  condition?: Condition<number | string>;
  groupBy?: string[];
  connections?: string[];
  after?: string;
  state: RuleState;
  error: string | null;
  lastEvaluatedAt: string | null;
  nextEvaluationAt: string | null;
}

/** One group of a rule, from the time when its condition began to hold until the condition ended. */
export interface Alert {
  id: string;
  rule: string;
  name: string;
  labels: Record<string, string | null>;
  state: AlertState;
  severity: Severity;
  surface: string;
  value: number | null;
  startedAt: string;
  firedAt: string | null;
  resolvedAt: string | null;
  acknowledgedBy: string | null;
  acknowledgedAt: string | null;
  comment: string | null;
}

export interface AlertPage {
  alerts: Alert[];
  /** Present if another page follows. */
  cursor?: string;
}

/** The result of one evaluation that changes nothing. */
export interface Trial {
  alerts: { labels: Record<string, string | null>; value: number | null; wouldFire: boolean }[];
  rows: number;
  error: string | null;
}

/** Returns all rules, sorted by lookup; needs Workspace.Alert.Read. */
export function fetchAlertRules(api: Client, signal?: AbortSignal): Promise<AlertRule[]> {
  return fetchAllItems<AlertRule>(api, "/oi-api/alert-rules", "rules", signal);
}

export function alertRulePath(lookup: string): string {
  return formatPath`/oi-api/alert-rules/${lookup}`;
}

/** Returns a page of alerts, newest first. */
export function fetchAlerts(
  api: Client,
  query: { state?: AlertState; limit?: number; cursor?: string | undefined },
  signal?: AbortSignal,
): Promise<AlertPage> {
  return api.get<AlertPage>("/oi-api/alerts", { query, ...(signal ? { signal } : {}) });
}

export function acknowledgeAlert(api: Client, id: string, comment: string): Promise<Alert> {
  return api.post<Alert>(formatPath`/oi-api/alerts/${id}/acknowledge`, comment === "" ? {} : { comment });
}

export function evaluateAlertRule(api: Client, lookup: string): Promise<Trial> {
  return api.post<Trial>(formatPath`/oi-api/alert-rules/${lookup}/evaluate`);
}
