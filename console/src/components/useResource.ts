import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isAbort } from "@/api/problem.ts";

/** A fetched resource. A reload keeps the previous data until the new ones arrive. */
export interface Resource<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  reload: () => void;
}

/**
 * Fetches a resource on mount and on each change of `inputs`; aborts the previous request, also on unmount.
 * @param load passes the signal on to the api
 */
export function useResource<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Resource<T> {
  const [state, setState] = useState<Omit<Resource<T>, "reload">>({ data: undefined, error: undefined, loading: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  // Before the browser paints, so that data of earlier inputs never appear as loaded for the new ones.
  useLayoutEffect(() => {
    const abort = new AbortController();
    setState((before) => (before.loading ? before : { ...before, loading: true }));
    latest.current(abort.signal).then(
      (data) => abort.signal.aborted || setState({ data, error: undefined, loading: false }),
      (error: unknown) =>
        abort.signal.aborted || isAbort(error) || setState((before) => ({ ...before, error, loading: false })),
    );
    return () => abort.abort();
  }, [...inputs, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  return { ...state, reload };
}
