import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { isAbort } from "@/api/index.ts";
import type { QueryResult } from "@/api/queries.ts";
import { fetchRows, type QueryCall } from "./queryCall.ts";

/** Runs of a query: the last result with its call, or the error. */
export interface Run {
  answer: QueryResult | undefined;
  /** The call of `answer`, used for downloads. */
  asked: QueryCall | undefined;
  error: unknown;
  busy: boolean;
  start: (ask: QueryCall) => void;
  stop: () => void;
}

type State = Omit<Run, "start" | "stop">;

const IDLE: State = { answer: undefined, asked: undefined, error: undefined, busy: false };

/** Runs one query at a time; a new run, or leaving the page, aborts the previous one. */
export function useRun(): Run {
  const [state, setState] = useState<State>(IDLE);
  const abort = useRef<AbortController>(undefined);
  const stop = useCallback(() => {
    abort.current?.abort();
    setState((before) => ({ ...before, busy: false }));
  }, []);
  const start = useCallback((ask: QueryCall) => {
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    setState((before) => ({ ...before, error: undefined, busy: true }));
    fetchRows(ask, mine.signal).then(
      (answer) => mine.signal.aborted || setState({ answer, asked: ask, error: undefined, busy: false }),
      (error: unknown) => mine.signal.aborted || isAbort(error) || setState({ ...IDLE, asked: ask, error }),
    );
  }, []);
  useEffect(() => () => abort.current?.abort(), []);
  return { ...state, start, stop };
}
