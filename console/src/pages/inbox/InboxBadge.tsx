import { useLayoutEffect } from "preact/hooks";
import { subscribeToDecisions } from "@/api/decisions.ts";
import { api } from "@/api/index.ts";
import { isPermanent } from "@/api/problem.ts";
import { NavCount } from "@/components/NavCount.tsx";
import { usePolling } from "@/components/usePolling.ts";
import { useReader } from "./useReader.ts";
import { countWaiting, formatWaiting } from "./waiting.ts";

const MINUTE_MS = 60_000;
const AFTER_REJECTION_MS = 10 * MINUTE_MS;

/** The number of decisions that wait for the reader, in the navigation. */
export function InboxBadge() {
  const reader = useReader();
  const { data, reload } = usePolling(
    (signal) => countWaiting(api, reader, signal),
    ({ error }) => (isPermanent(error) ? AFTER_REJECTION_MS : MINUTE_MS),
    [JSON.stringify(reader)],
  );
  useLayoutEffect(() => subscribeToDecisions(reload), [reload]);
  const text = data ? formatWaiting(data) : "";
  return text ? <NavCount text={text} of="waiting" /> : null;
}
