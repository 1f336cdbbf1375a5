import { useState } from "preact/hooks";

/** Something that a button starts: whether it is under way, and what went wrong. */
export interface Work {
  busy: boolean;
  error: unknown;
  run: (work: () => Promise<void>) => Promise<void>;
  /** Forgets what went wrong. */
  clear: () => void;
}

export function useWork(): Work {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, run, clear: () => setError(undefined) };
}
