import { useEffect, useRef } from "preact/hooks";
import { type Resource, useResource } from "./useResource.ts";

/** Input for the length of the next pause. */
export interface Turn<T> {
  data: T | undefined;
  /** Data of the previous turn. */
  before: T | undefined;
  failed: boolean;
  /** The error of a failed turn. */
  error?: unknown;
  /** The previous pause in milliseconds; 0 at first. */
  waited: number;
}

/**
 * Fetches repeatedly while the tab is visible, and at once when it becomes visible again.
 * @param load passes the signal on to the api
 * @param pause returns the milliseconds until the next turn
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
    const { data: before, waited } = last.current;
    const wait = pause({ data, before, failed: error !== undefined, error, waited });
    last.current = { data, waited: wait };
    return callWhenVisible(wait, reload);
  }, [loading, data, error]);
  return resource;
}

/** Calls back after a delay, but waits while the tab is hidden. Returns the function that cancels it. */
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
