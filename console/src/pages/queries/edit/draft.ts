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

/** A parameter in the form. */
export interface ParameterDraft {
  /** Identifies the row while its name changes. */
  id: number;
  name: string;
  type: string;
  /** Whether the parameter is required. */
  required: boolean;
  /** Text of the default; empty means null, except for strings. */
  fallback: string;
}

/** A query in the form. */
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

/** Returns an empty form, or one with the text of the ad-hoc editor. */
export function createDraft(kql: string | undefined): QueryDraft {
  return { ...NEW, kql: kql ?? NEW.kql };
}

export function createParameter(): ParameterDraft {
  lastId += 1;
  return { id: lastId, name: "", type: "string", required: false, fallback: "" };
}

/** Converts a stored query to a form. */
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

/** Returns the body of a PUT, without empty optional properties. */
export function toBody(draft: QueryDraft): Record<string, unknown> {
  return {
    name: draft.name.trim(),
    surface: draft.surface,
    kql: draft.kql,
    ...(draft.description.trim() === "" ? {} : { description: draft.description.trim() }),
    ...(draft.apiPath.trim() === "" ? {} : { apiPath: draft.apiPath.trim() }),
    // Invalid numbers are sent as text; the service rejects them with a message.
    cacheSeconds: /^\d{0,9}$/.test(draft.cacheSeconds.trim()) ? Number(draft.cacheSeconds) : draft.cacheSeconds,
    parameters: draft.parameters.map(toParameter),
  };
}

/** Returns the typed query for a run: parameters without a name are omitted. */
export function toTrialQuery(draft: QueryDraft): Pick<WarmQuery, "surface" | "kql" | "parameters"> {
  const parameters = draft.parameters.map(toParameter).filter(({ name }) => name !== "");
  return { surface: draft.surface, kql: draft.kql, parameters };
}

function toParameter(draft: ParameterDraft): QueryParameter {
  const parameter = { name: draft.name.trim(), type: draft.type };
  return draft.required ? parameter : { ...parameter, default: parseDefault(draft.type, draft.fallback) };
}

/**
 * Parses the default as JSON of its type.
 * Invalid values, and numbers that would be rounded, are sent as text, which the service parses.
 */
function parseDefault(type: string, text: string): unknown {
  if (type === "string") {
    return text;
  }
  const trimmed = text.trim();
  if (trimmed === "") {
    return null;
  }
  const isText = type === "datetime" || type === "timespan" || type === "guid";
  const value = isText || (type === "dynamic" && /\d{16}/.test(trimmed)) ? trimmed : parseJson(trimmed);
  return typeof value === "number" && String(value) !== trimmed ? trimmed : value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
