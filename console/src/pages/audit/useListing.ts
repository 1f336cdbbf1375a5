import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, isAbort } from "@/api/index.ts";
import { queryRecords } from "@/api/provenance.ts";
import { countNewer, type Listing, loadOlder, type Newer, openListing, type QueryRecords } from "./paging.ts";
import type { Place } from "./place.ts";

const POLL_MS = 10_000;
const NONE: Newer = { count: 0, more: false };

/** The loaded records of a view. */
export interface ListingState {
  readonly ask: QueryRecords;
  readonly listing: Listing | undefined;
  readonly error: unknown;
  readonly loading: boolean;
  /** Newer records. */
  readonly newer: Newer;
  /** Loads a further page of older records, unless a load is running. */
  readonly more: () => void;
  /** Reloads the view from its first record. */
  readonly refresh: () => void;
}

interface State {
  readonly listing: Listing | undefined;
  readonly error: unknown;
  readonly loading: boolean;
}

/** Loads the records of a view page by page, and counts newer ones while the page is visible. */
export function useListing({ chain, filters, at }: Place): ListingState {
  const key = JSON.stringify([chain, filters, at]);
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<State>({ listing: undefined, error: undefined, loading: true });
  const [above, setAbove] = useState(NONE);
  const work = useRef<AbortController>(undefined);
  const ask = useMemo<QueryRecords>(() => (window, signal) => queryRecords(api, chain, window, signal), [key]);

  const read = (reading: (signal: AbortSignal) => Promise<Listing>, before: Listing | undefined) => {
    work.current?.abort();
    const abort = new AbortController();
    work.current = abort;
    setState({ listing: before, error: undefined, loading: true });
    reading(abort.signal).then(
      (listing) => abort.signal.aborted || setState({ listing, error: undefined, loading: false }),
      (error: unknown) =>
        abort.signal.aborted || isAbort(error) || setState({ listing: before, error, loading: false }),
    );
  };

  // Before the browser paints, so that rows of an earlier view never appear as loaded for the new one.
  useLayoutEffect(() => {
    setAbove(NONE);
    read((signal) => openListing(ask, filters, at, signal), undefined);
    return () => work.current?.abort();
  }, [key, turn]);

  useNewer(ask, above.more ? undefined : state.listing, (signal, listing) =>
    countNewer(ask, filters, listing, signal).then(setAbove),
  );

  const { listing, error, loading } = state;
  const more = () => {
    if (listing?.hasMore && !loading) {
      read((signal) => loadOlder(ask, filters, listing, signal), listing);
    }
  };
  return { ask, listing, error, loading, newer: above, more, refresh: () => setTurn(turn + 1) };
}

/** Counts newer records every few seconds while the page is visible, and when it becomes visible; retries after errors. */
function useNewer(
  ask: QueryRecords,
  listing: Listing | undefined,
  look: (signal: AbortSignal, of: Listing) => Promise<void>,
) {
  const top = listing?.top;
  const latest = useRef({ listing, look });
  latest.current = { listing, look };
  useEffect(() => {
    const abort = new AbortController();
    const turn = () => {
      const { listing: of, look: now } = latest.current;
      if (of && document.visibilityState === "visible") {
        now(abort.signal, of).catch(() => undefined);
      }
    };
    const timer = setInterval(turn, POLL_MS);
    document.addEventListener("visibilitychange", turn);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", turn);
      abort.abort();
    };
  }, [ask, top]);
}
