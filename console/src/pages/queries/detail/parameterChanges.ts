// The parameters of two versions of a query, compared by their names.
import type { QueryParameter } from "@/api/queries.ts";

/** One parameter in both versions, described in words; empty where a version lacks it. */
export interface ParameterChange {
  name: string;
  change: "unchanged" | "added" | "removed" | "changed";
  before: string;
  after: string;
}

/** Compares the parameters of two stored versions: those of the newer one in its order, then removed ones. */
export function compareParameters(before: unknown, after: unknown): ParameterChange[] {
  const old = new Map(toParameters(before).map((each) => [each.name, describeParameter(each)]));
  const now = new Map(toParameters(after).map((each) => [each.name, describeParameter(each)]));
  const names = [...now.keys(), ...[...old.keys()].filter((name) => !now.has(name))];
  return names.map((name) => {
    const [left, right] = [old.get(name), now.get(name)];
    const change =
      left === undefined ? "added" : right === undefined ? "removed" : left === right ? "unchanged" : "changed";
    return { name, change, before: left ?? "", after: right ?? "" };
  });
}

/** Describes type and default: `long, default 5`. */
function describeParameter(parameter: QueryParameter): string {
  const value = "default" in parameter ? `default ${JSON.stringify(parameter.default)}` : "required";
  return `${parameter.type}, ${value}`;
}

function toParameters(value: unknown): QueryParameter[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "object" && each !== null) : [];
}
