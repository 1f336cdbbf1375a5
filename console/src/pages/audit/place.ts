// The address of the audit page: chain, filters, start of the list, and record.
import type { Filters } from "@/api/provenance.ts";
import { type ChainName, isScoped, isTarget } from "@/proof/chains.ts";
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

/** Parses an address; the default is the configuration's chain from its end, without filters. */
export function parsePlace(route: Route): Place {
  const [target, scopeKey = ""] = route.rest;
  const known = isTarget(target) ? target : "PlatformConfig";
  return {
    chain: { target: known, scopeKey: isScoped(known) ? scopeKey : "" },
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

function parseNumber(text: string | null): number | undefined {
  const found = Number(text);
  return Number.isSafeInteger(found) && found > 0 ? found : undefined;
}
