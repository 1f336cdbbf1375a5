import { useEffect, useState } from "preact/hooks";
import { confirmNavigation, confirmOwnNavigation } from "./unsaved.ts";

/** A parsed address: `#/queries/pressure-5m?limit=10` is page `queries`, rest `["pressure-5m"]`. */
export interface Route {
  page: string;
  rest: readonly string[];
  query: URLSearchParams;
}

/** Reads the part of an address from its `#` on. */
export function parseHash(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const cut = text.indexOf("?");
  const [path, query] = cut < 0 ? [text, ""] : [text.slice(0, cut), text.slice(cut + 1)];
  const [page = "", ...rest] = path.split("/").filter(Boolean).map(decodeSegment);
  return { page, rest, query: new URLSearchParams(query) };
}

/** Builds the address of a page: buildHref("queries", ["pressure-5m"], { limit: 10 }). Empty query values are omitted. */
export function buildHref(
  page: string,
  rest: readonly string[] = [],
  query: Record<string, string | number | undefined> = {},
): string {
  const path = [page, ...rest].map(encodeURIComponent).join("/");
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path}${text === "" ? "" : `?${text}`}`;
}

/** Navigates to an address of `buildHref`; `replace` adds no history entry, as for filters. */
export function navigate(address: string, how: "push" | "replace" = "push"): void {
  if (!confirmOwnNavigation(new URL(address, window.location.href).hash)) {
    return;
  }
  if (how === "push") {
    window.location.hash = address;
  } else {
    window.history.replaceState(null, "", address);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

/** Returns the current route and rerenders on changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseHash(window.location.hash));
  useEffect(() => {
    let shown = window.location.hash;
    const update = () => {
      if (!confirmNavigation(window.location.hash)) {
        window.history.pushState(null, "", shown);
        return;
      }
      shown = window.location.hash;
      setRoute(parseHash(shown));
    };
    window.addEventListener("hashchange", update);
    update();
    return () => window.removeEventListener("hashchange", update);
  }, []);
  return route;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
