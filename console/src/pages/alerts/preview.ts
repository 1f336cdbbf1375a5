// What a threshold rule would have done in the past: the query is executed for some past times.
import type { Condition, Operator } from "@/api/alerts.ts";
import { type Client, formatPath } from "@/api/client.ts";
import type { QueryResult } from "@/api/queries.ts";
import { parseExactly } from "@/pages/queries/run/exactJson.ts";
import { readObject } from "@/proof/jsonText.ts";
import { type RuleDraft, splitColumns, toCondition } from "./ruleDraft.ts";

export const STEPS = 24;
const AT_ONCE = 4;
const MAX_LINES = 6;
const LIMIT = 10_000;
const YEAR_SECONDS = 365 * 86_400;

/** The groups at one time: the value of each group and whether it meets the condition. */
export type Step = ReadonlyMap<string, { value: number | null; matches: boolean }>;

/** The course of a rule over some past times. */
export interface Preview {
  /** Seconds since 1970, ascending. */
  times: number[];
  /** Values of the groups that matched most often, at most six. */
  lines: { label: string; values: (number | null)[] }[];
  /** Number of alerts that would have fired. */
  fired: number;
  /** Number of groups. */
  groups: number;
}

const COMPARISONS: Record<Operator, (left: number, right: number) => boolean> = {
  gt: (left, right) => left > right,
  ge: (left, right) => left >= right,
  lt: (left, right) => left < right,
  le: (left, right) => left <= right,
  eq: (left, right) => left === right,
  ne: (left, right) => left !== right,
};
const UNITS: Record<string, number> = { W: 604_800, D: 86_400, H: 3600, M: 60, S: 1 };

/** Returns the seconds of an ISO 8601 duration of weeks, days, hours, minutes and seconds. */
export function parseDuration(text: string): number {
  const parts = [...text.replace(",", ".").matchAll(/(\d+(?:\.\d+)?)([WDHMS])/g)];
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNITS[unit ?? ""] ?? 0), 0);
}

/**
 * Evaluates the rows of a query as the service does.
 * @param type Kusto type of the condition's column
 */
export function evaluateRows(
  condition: Condition,
  groupBy: readonly string[],
  rows: readonly Record<string, unknown>[],
  type = "",
): Step {
  const step = new Map<string, { value: number | null; matches: boolean }>();
  if ("rows" in condition && groupBy.length === 0) {
    return step.set("", { value: rows.length, matches: rows.length > 0 === (condition.rows === "any") });
  }
  for (const row of rows) {
    const key = groupBy.map((name) => `${name}: ${formatLabel(row[name])}`).join(", ");
    const before = step.get(key);
    if ("rows" in condition) {
      step.set(key, { value: (before?.value ?? 0) + 1, matches: true });
    } else if (!before?.matches) {
      const value = toNumber(row[condition.column], type);
      const matches = value !== null && COMPARISONS[condition.operator](value, condition.value);
      if (!before || matches) {
        step.set(key, { value, matches });
      }
    }
  }
  return step;
}

/** Counts how often an alert would have fired: a group that meets the condition for the time, until it does not. */
export function countFirings(times: readonly number[], steps: readonly Step[], hold: number): number {
  const groups = new Set(steps.flatMap((step) => [...step.keys()]));
  const counts = [...groups].map((key) =>
    countPeriods(
      times,
      steps.map((step) => step.get(key)?.matches === true),
      hold,
    ),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Counts the periods in which a condition held for a time. */
function countPeriods(times: readonly number[], matches: readonly boolean[], hold: number): number {
  let start: number | undefined;
  let fires = false;
  let count = 0;
  for (const [index, time] of times.entries()) {
    start = matches[index] ? (start ?? time) : undefined;
    const holds = start !== undefined && time - start >= hold;
    count += Number(holds && !fires);
    fires = holds;
  }
  return count;
}

/** Builds the preview from the evaluations of some times. */
export function buildPreview(times: number[], steps: readonly Step[], hold: number): Preview {
  const matches = new Map<string, number>();
  for (const step of steps) {
    for (const [key, group] of step) {
      matches.set(key, (matches.get(key) ?? 0) + Number(group.matches));
    }
  }
  const shown = [...matches].sort(([, left], [, right]) => right - left).slice(0, MAX_LINES);
  return {
    times,
    lines: shown.map(([key]) => ({ label: key || "value", values: steps.map((step) => step.get(key)?.value ?? null) })),
    fired: countFirings(times, steps, hold),
    groups: matches.size,
  };
}

/**
 * Executes the query of a threshold rule for past times and evaluates its condition.
 * @param seconds length of the past
 */
export async function fetchPreview(
  api: Client,
  draft: RuleDraft,
  seconds: number,
  signal: AbortSignal,
  now: number = Date.now() / 1000,
): Promise<Preview> {
  const times = Array.from({ length: STEPS }, (_, index) => Math.floor(now - (seconds * (STEPS - 1 - index)) / STEPS));
  const range = draft.timeRange.trim() === "" ? YEAR_SECONDS : parseDuration(draft.timeRange);
  const steps = new Array<Step>(STEPS);
  const pending = [...times.entries()];
  const work = async () => {
    for (let next = pending.shift(); next; next = pending.shift()) {
      const [index, time] = next;
      const { results, columns } = await fetchRows(api, draft, time - range, time, signal);
      const type = columns.find(({ name }) => name === draft.column)?.type;
      steps[index] = evaluateRows(toCondition(draft), splitColumns(draft.groupBy), results, type);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return buildPreview(times, steps, parseDuration(draft.hold));
}

async function fetchRows(
  api: Client,
  draft: RuleDraft,
  from: number,
  to: number,
  signal: AbortSignal,
): Promise<QueryResult> {
  const values = Object.entries(readObject(draft.parameters).value ?? {});
  const parameters = values.map(([name, value]) => [
    `p.${name}`,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  const query = { ...Object.fromEntries(parameters), from: toTime(from), to: toTime(to), limit: LIMIT };
  const path = formatPath`/oi-api/warm-queries/${draft.query}`;
  const result = await api.get<QueryResult>(path, { query, signal, parse: parseExactly });
  checkResult(draft, result);
  return result;
}

/** Throws an error where the service would put the rule into error. */
function checkResult(draft: RuleDraft, { columns, truncated, results }: QueryResult): void {
  const compares = draft.conditionKind === "column";
  const groupBy = splitColumns(draft.groupBy);
  const used = compares ? [draft.column, ...groupBy] : groupBy;
  const missing = used.find((column) => columns.every(({ name }) => name !== column));
  if (missing !== undefined) {
    throw new Error(`The query has no column “${missing}”.`);
  }
  if (truncated && used.length > 0) {
    throw new Error(`The query returns more than ${results.length} rows; aggregate or filter its rows.`);
  }
}

function toTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

/** Returns a finite number; replies contain decimals, and longs beyond 2^53, as text. The latter are rounded. */
function toNumber(value: unknown, type: string): number | null {
  const isText = typeof value === "string" && (type === "decimal" || type === "long");
  const number = isText ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

function formatLabel(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
