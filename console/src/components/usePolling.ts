import { useEffect, useRef } from "preact/hooks";
import { type Resource, useResource } from "./useResource.ts";

/** What the pause until the next turn is worked out from. */
export interface Turn<T> {
  data: T | undefined;
  /** What the turn before gave. */
  before: T | undefined;
  failed: boolean;
  /** The pause before this turn, milliseconds; 0 at first. */
  waited: number;
}

/**
 * Fetches something again and again, as long as the tab is seen; a tab that comes back fetches at once.
 * @param load passes the signal on to the api
 * @param pause gives the milliseconds until the next turn
 */
export function usePolling<T>(
  load: (signal: AbortSignal) => Promise<T>,
  pause: (turn: Turn<T>) => number,
  inputs: readonly unknown[],
): Resource<T> {
  const resource = useResource(load, inputs);
  const { data, error, loading, reload } = resource;
  const last = useRef<{ data: T | undefined; waited: number }>({ data: undefined, waited: 0 });
  useEffect(() => {
    if (loading) {
      return;
    }
    const wait = pause({ data, before: last.current.data, failed: error !== undefined, waited: last.current.waited });
    last.current = { data, waited: wait };
    return callWhenVisible(wait, reload);
  }, [loading, data, error]);
  return resource;
}

/** Calls back after a while; where the tab is hidden then, as soon as it is seen again. Gives what prevents it. */
function callWhenVisible(milliseconds: number, callback: () => void): () => void {
  const due = () => {
    if (document.visibilityState === "visible") {
      document.removeEventListener("visibilitychange", due);
      callback();
    }
  };
  const timer = setTimeout(() => {
    document.addEventListener("visibilitychange", due);
    due();
  }, milliseconds);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", due);
  };
}
