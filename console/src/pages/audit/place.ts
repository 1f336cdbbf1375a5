// The address of the audit page: chain, filters, start of the list, and record.
import type { Filters } from "@/api/provenance.ts";
import { type ChainName, isScoped, isTarget, TARGETS } from "@/proof/chains.ts";
import { buildHref, type Route } from "@/router/route.ts";

/** A view of the audit page. */
export interface Place {
  /** Incomplete if the container needs a scope and none is set. */
  readonly chain: ChainName;
  readonly filters: Filters;
  /** First sequence of the list, instead of the chain's end. */
  readonly at: number | undefined;
  /** Sequence of the open record. */
  readonly record: number | undefined;
}

const PARAMETERS = ["action", "type", "who", "from", "to", "at", "record"];
const NUMBERS = ["at", "record"];

/**
 * Returns why an address names no view, undefined for a valid one.
 *
 * Such a link has a typing error; any chain or record that the page showed instead would pass for the linked one.
 */
export function findAddressError({ rest, query }: Route): string | undefined {
  const [target, scopeKey, ...more] = rest;
  if (target !== undefined && !isTarget(target)) {
    return `The address contains the unknown target “${target}”; the targets are ${TARGETS.join(", ")}.`;
  }
  if (scopeKey !== undefined && !isScoped(target ?? "PlatformConfig")) {
    return `The address contains the scope “${scopeKey}”, but ${target} has no scopes.`;
  }
  if (more.length > 0) {
    return "The address contains a further part after the scope; a slash in a scope is written %2F.";
  }
  const unknown = [...query.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined) {
    return `The address contains the unknown parameter “${unknown}”; the parameters are ${PARAMETERS.join(", ")}.`;
  }
  const repeated = PARAMETERS.find((name) => query.getAll(name).length > 1);
  if (repeated !== undefined) {
    return `The address contains the parameter “${repeated}” more than once.`;
  }
  const wrong = NUMBERS.find((name) => query.has(name) && parseNumber(query.get(name)) === undefined);
  return wrong && `The parameter “${wrong}” of the address must be a whole number from 1 to 999999999999.`;
}

/** Parses a valid address; the default is the configuration's chain from its end, without filters. */
export function parsePlace(route: Route): Place {
  const [target, scopeKey = ""] = route.rest;
  return {
    chain: { target: isTarget(target) ? target : "PlatformConfig", scopeKey },
    filters: parseFilters(route.query),
    at: parseNumber(route.query.get("at")),
    record: parseNumber(route.query.get("record")),
  };
}

/** Returns the address of a view. */
export function buildAddress(place: Place): string {
  const { chain, filters } = place;
  const rest = chain.scopeKey === "" ? [chain.target] : [chain.target, chain.scopeKey];
  return buildHref("audit", rest, {
    action: filters.actionType,
    type: filters.entityType,
    who: filters.userId,
    from: filters.startDate,
    to: filters.endDate,
    at: place.at,
    record: place.record,
  });
}

/** Returns the address of one record. */
export function buildRecordAddress(chain: ChainName, sequence: number): string {
  return buildAddress({ chain, filters: {}, at: undefined, record: sequence });
}

/** Tells whether a chain has the scope that its container requires. */
export function isComplete(chain: ChainName): boolean {
  return !isScoped(chain.target) || chain.scopeKey !== "";
}

/** Returns how many filters are set. */
export function countFilters(filters: Filters): number {
  return Object.values(filters).filter(Boolean).length;
}

function parseFilters(query: URLSearchParams): Filters {
  const text = (name: string) => query.get(name) || undefined;
  return {
    actionType: text("action"),
    entityType: text("type"),
    userId: text("who"),
    startDate: normalizeDate(text("from")),
    endDate: normalizeDate(text("to")),
  };
}

/** Returns a date as the service reads it: with the plus sign that an address turned into a blank, or else in UTC. */
function normalizeDate(text: string | undefined): string | undefined {
  return text?.replace(/(T[\d:.]+) (?=\d\d:?\d\d$)/i, "$1+").replace(/^(\d{4}-\d\d-\d\d)[T ]([\d:.]+)$/i, "$1T$2Z");
}

/** Returns the number of a record, which has at most twelve digits; undefined for any other text. */
function parseNumber(text: string | null): number | undefined {
  return text !== null && /^\d{1,12}$/.test(text) && Number(text) > 0 ? Number(text) : undefined;
}
