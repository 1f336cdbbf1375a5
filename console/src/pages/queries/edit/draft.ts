import type { QueryParameter, WarmQuery } from "@/api/queries.ts";
import { formatDefault, isRequired } from "../run/parameters.ts";

export const TYPES = [
  "string",
  "int",
  "long",
  "real",
  "bool",
  "datetime",
  "timespan",
  "decimal",
  "guid",
  "dynamic",
] as const;

/** A parameter as it stands in the form. */
export interface ParameterDraft {
  /** Tells rows apart while their names change. */
  id: number;
  name: string;
  type: string;
  /** Whether a caller must give it. */
  required: boolean;
  /** Text of the default; empty is null, but for strings. */
  fallback: string;
}

/** A query as it stands in the form. */
export interface QueryDraft {
  lookup: string;
  name: string;
  surface: string;
  description: string;
  apiPath: string;
  cacheSeconds: string;
  kql: string;
  parameters: readonly ParameterDraft[];
}

const NEW: QueryDraft = {
  lookup: "",
  name: "",
  surface: "",
  description: "",
  apiPath: "",
  cacheSeconds: "",
  kql: "Telemetry\n| summarize readings = count() by ConnectionLookup, bin(Timestamp, 5m)\n| order by Timestamp asc\n",
  parameters: [],
};

let lastId = 0;

/** An empty form, or one with a text that was tried out. */
export function createDraft(kql: string | undefined): QueryDraft {
  return { ...NEW, kql: kql ?? NEW.kql };
}

export function createParameter(): ParameterDraft {
  lastId += 1;
  return { id: lastId, name: "", type: "string", required: false, fallback: "" };
}

/** A stored query as a form. */
export function toDraft(query: WarmQuery): QueryDraft {
  return {
    lookup: query.lookup,
    name: query.name,
    surface: query.surface,
    description: query.description ?? "",
    apiPath: query.apiPath ?? "",
    cacheSeconds: query.cacheSeconds === 0 ? "" : String(query.cacheSeconds),
    kql: query.kql,
    parameters: query.parameters.map((each) => ({
      ...createParameter(),
      name: each.name,
      type: each.type,
      required: isRequired(each),
      fallback: formatDefault(each),
    })),
  };
}

/** The body of a PUT; what is left empty and may be left out is. */
export function toBody(draft: QueryDraft): Record<string, unknown> {
  return {
    name: draft.name.trim(),
    surface: draft.surface,
    kql: draft.kql,
    ...(draft.description.trim() === "" ? {} : { description: draft.description.trim() }),
    ...(draft.apiPath.trim() === "" ? {} : { apiPath: draft.apiPath.trim() }),
    // What is no whole number goes as text, so that the service says what is wrong with it.
    cacheSeconds: /^\d{0,9}$/.test(draft.cacheSeconds.trim()) ? Number(draft.cacheSeconds) : draft.cacheSeconds,
    parameters: draft.parameters.map(toParameter),
  };
}

function toParameter(draft: ParameterDraft): QueryParameter {
  const parameter = { name: draft.name.trim(), type: draft.type };
  return draft.required ? parameter : { ...parameter, default: parseDefault(draft.type, draft.fallback) };
}

/** The default as JSON of its type; what does not read as such goes as text, and the service judges it. */
function parseDefault(type: string, text: string): unknown {
  if (type === "string") {
    return text;
  }
  const trimmed = text.trim();
  if (trimmed === "") {
    return null;
  }
  const value = type === "datetime" || type === "timespan" || type === "guid" ? trimmed : parseJson(trimmed);
  return typeof value === "number" && String(value) !== trimmed ? trimmed : value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
