// The address of the amendments page: scope and view.
import { buildHref, type Route } from "@/router/route.ts";

export type View = "queue" | "all" | "entity" | "new";

/** A view of the amendments page. */
export interface Place {
  /** Empty before a choice. */
  readonly scope: string;
  readonly view: View;
  /** Id for the view `entity`. */
  readonly entity: string;
  /** Sequence of the plant event to amend, or of the first amendment of the queue. */
  readonly record: number | undefined;
}

const VIEWS: readonly View[] = ["queue", "all", "entity", "new"];

/** Parses an address; the default view is the queue. */
export function parsePlace(route: Route): Place {
  const [scope = "", named, entity = ""] = route.rest;
  const record = Number(route.query.get("record"));
  return {
    scope,
    view: VIEWS.find((view) => view === named) ?? "queue",
    entity,
    record: Number.isSafeInteger(record) && record > 0 ? record : undefined,
  };
}

/** Returns the address of a view. */
export function buildViewAddress(scope: string, view: View): string {
  return buildHref("amendments", scope === "" ? [] : [scope, view]);
}

/** Returns the address of a pending amendment, where it can be decided. */
export function buildQueueAddress(scope: string, sequence: number | null): string {
  return buildHref("amendments", [scope, "queue"], sequence === null ? {} : { record: sequence });
}

/** Returns the address of an entity's timeline. */
export function buildEntityAddress(scope: string, entity: string): string {
  return buildHref("amendments", [scope, "entity", entity]);
}
