import { usePolling } from "@/components/usePolling.ts";
import { type EntraConfig, fetchEntraConfig } from "./entra.ts";

const RETRY_MS = 5000;

/**
 * Returns the sign-in configuration, undefined without one; repeats a failed request, because sessions often end while
 * the service restarts.
 * @param isNeeded false if no sign-in is offered, so that nothing is fetched
 */
export function useEntraConfig(isNeeded = true): EntraConfig | undefined {
  return usePolling(
    async (signal) => (isNeeded ? await fetchEntraConfig(signal) : undefined),
    ({ failed }) => (failed ? RETRY_MS : Infinity),
    [isNeeded],
  ).data;
}
