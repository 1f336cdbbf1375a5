import type { Route } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import type { Right } from "@/session/rights.ts";
import { useViewFocus } from "@/shell/useViewFocus.ts";

/** The view of a page that lists, shows and adds items. */
export type AddressedView = { view: "list" } | { view: "new" } | { view: "item"; key: string };

/**
 * Returns the view of an address: `#/team` lists, `#/team/<key>` shows an item, `#/team?view=new` adds one.
 * @param right required to add an item
 */
export function useAddressedView(route: Route, right: Right): AddressedView {
  const adds = useHasRights(right) && route.query.get("view") === "new";
  const [key] = route.rest;
  useViewFocus(key === undefined ? String(adds) : `/${key}`);
  if (key !== undefined) {
    return { view: "item", key };
  }
  return { view: adds ? "new" : "list" };
}
