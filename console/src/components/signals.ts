// Units and expected ranges of charts, from the declared signals.
import { fetchSignals, type Signal } from "@/api/connections.ts";
import { ApiError, api } from "@/api/index.ts";
import { useHasRights } from "@/session/hooks.ts";
import { type Limits, NO_LIMITS } from "./chartLimits.ts";
import { useResource } from "./useResource.ts";

/** Unit and expected range of the values of a chart. */
export interface Scale {
  /** Empty if it is unknown or different. */
  unit: string;
  limits: Limits;
}

export const NO_SCALE: Scale = { unit: "", limits: NO_LIMITS };

const NO_SIGNALS: ReadonlyMap<string, readonly Signal[]> = new Map();

/** Returns the declared signals of connections by lookup; none without the right to read them, or after an error. */
export function useSignals(lookups: readonly string[]): ReadonlyMap<string, readonly Signal[]> {
  const readable = useHasRights("Workspace.Catalog.Read");
  const wanted = readable ? [...new Set(lookups)].sort() : [];
  const { data } = useResource(
    async (signal) =>
      new Map(await Promise.all(wanted.map(async (lookup) => [lookup, await fetchDeclared(lookup, signal)] as const))),
    [wanted.join(",")],
  );
  return data ?? NO_SIGNALS;
}

async function fetchDeclared(lookup: string, signal: AbortSignal): Promise<readonly Signal[]> {
  try {
    return await fetchSignals(api, lookup, signal);
  } catch (error) {
    // A chart without units is better than none, for example of a removed connection.
    if (error instanceof ApiError) {
      return [];
    }
    throw error;
  }
}

/** Returns the name of a signal's position in the live stream: `/motor/speed` is `motor.speed`. */
export function toFieldName(pointer: string): string {
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
}

/** Returns the common unit and range of signals; a part is missing if they differ or one of them is undefined. */
export function combineSignals(signals: readonly (Signal | undefined)[]): Scale {
  const [first] = signals;
  if (first === undefined) {
    return NO_SCALE;
  }
  const sameUnit = signals.every((each) => each?.unit === first.unit);
  const sameLimits = sameUnit && signals.every((each) => each?.min === first.min && each?.max === first.max);
  return {
    unit: sameUnit ? (first.unit ?? "") : "",
    limits: sameLimits ? { min: first.min, max: first.max } : NO_SCALE.limits,
  };
}
