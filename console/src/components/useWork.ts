import { useState } from "preact/hooks";

/** An action of a button: its progress and error. */
export interface Work {
  busy: boolean;
  error: unknown;
  run: (work: () => Promise<void>) => Promise<void>;
  /** Clears the error. */
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
