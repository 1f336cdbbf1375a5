import { type AuditScope, fetchBrokenChains } from "@/api/auditScopes.ts";
import { api } from "@/api/index.ts";
import { usePolling } from "@/components/usePolling.ts";
import type { Resource } from "@/components/useResource.ts";
import type { Target } from "@/proof/chains.ts";

const MINUTE_MS = 60_000;

/**
 * Reads every minute which chains the last verification found broken.
 * @param choice `target` limits the list to a container; without `isEnabled` nothing is read, and no chain is listed
 */
export function useBrokenChains({
  target,
  isEnabled = true,
}: {
  target?: Target;
  isEnabled?: boolean;
} = {}): Resource<readonly AuditScope[]> {
  return usePolling(
    async (signal) => (isEnabled ? await fetchBrokenChains(api, target, signal) : []),
    () => MINUTE_MS,
    [target, isEnabled],
  );
}
