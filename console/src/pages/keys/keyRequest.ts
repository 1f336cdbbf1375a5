import type { KeyRequest } from "@/api/keys.ts";
import { RIGHTS } from "@/components/rights/areas.ts";
import type { Right } from "@/session/rights.ts";

/** The telemetry that a bound key can send. */
export interface Binding {
  connections: readonly string[];
  /** Patterns of device ids, separated by white space; empty for all devices. */
  devices: string;
}

/** The fields of the form, apart from rights and binding. */
export interface KeyDraft {
  name: string;
  /** Empty for the caller. */
  owner: string;
  /** Days, or empty for no end. */
  ends: string;
}

/** Returns the words of a text that white space or commas separate. */
export function splitWords(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}

/** Returns the request for a key with rights. An own key with all rights follows later changes of them. */
export function buildKeyRequest(draft: KeyDraft, chosen: ReadonlySet<Right>, held: readonly Right[]): KeyRequest {
  // Only callers with every right know that another person's key has all rights of its owner.
  const all = chosen.size === held.length && (draft.owner === "" || held.length === RIGHTS.length);
  return { ...buildCommon(draft), ...(all ? {} : { rights: [...chosen].sort() }) };
}

/** Returns the request for a key that only sends telemetry of some connections and devices. */
export function buildBoundKeyRequest(draft: KeyDraft, binding: Binding): KeyRequest {
  const devices = splitWords(binding.devices);
  return {
    ...buildCommon(draft),
    connections: binding.connections,
    ...(devices.length === 0 ? {} : { devices }),
  };
}

function buildCommon({ name, owner, ends }: KeyDraft): KeyRequest {
  return {
    name,
    ...(owner === "" ? {} : { principal: owner }),
    ...(ends === "" ? {} : { expiresInDays: Number(ends) }),
  };
}
