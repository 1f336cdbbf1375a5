import { useEffect, useRef } from "preact/hooks";
import { createUnreachableError } from "@/api/problem.ts";
import { type Resource, useResource } from "./useResource.ts";

/** Longest duration of a turn, which can consist of many requests. */
const TIMEOUT_MS = 60_000;

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
 * Fetches repeatedly while the tab is visible, and at once when it becomes visible again. A turn that takes more than a
 * minute fails.
 * @param load passes the signal on to the api
 * @param pause returns the milliseconds until the next turn; Infinity if this one was the last
 */
export function usePolling<T>(
  load: (signal: AbortSignal) => Promise<T>,
  pause: (turn: Turn<T>) => number,
  inputs: readonly unknown[],
): Resource<T> {
  const resource = useResource((signal) => loadInTime(load, signal), inputs);
  const { data, error, loading, reload } = resource;
  const last = useRef<{ data: T | undefined; waited: number }>({ data: undefined, waited: 0 });
  useEffect(() => {
    if (loading) {
      return;
    }
    const { data: before, waited } = last.current;
    const wait = pause({ data, before, failed: error !== undefined, error, waited });
    last.current = { data, waited: wait };
    return wait === Infinity ? undefined : callWhenVisible(wait, reload);
  }, [loading, data, error]);
  return resource;
}

/**
 * Loads, but fails after the timeout: a service that accepts requests and never replies must not look like a service
 * whose data do not change.
 */
async function loadInTime<T>(load: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  const abort = new AbortController();
  const stop = () => abort.abort();
  signal.addEventListener("abort", stop);
  const timer = setTimeout(stop, TIMEOUT_MS);
  try {
    return await load(abort.signal);
  } catch (error) {
    throw abort.signal.aborted && !signal.aborted ? createUnreachableError() : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
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
