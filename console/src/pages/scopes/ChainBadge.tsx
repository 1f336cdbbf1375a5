import { fetchAllAuditScopes, isBroken } from "@/api/auditScopes.ts";
import { api } from "@/api/index.ts";
import { NavCount } from "@/components/NavCount.tsx";
import { usePolling } from "@/components/usePolling.ts";
import { formatCount } from "@/format.ts";

const PAUSE_MS = 600_000;

/** The number of chains that the last verification found broken, in the navigation. */
export function ChainBadge() {
  const { data } = usePolling(
    async (signal) => (await fetchAllAuditScopes(api, undefined, signal)).filter(isBroken).length,
    () => PAUSE_MS,
    [],
  );
  return data ? <NavCount text={formatCount(data)} of="broken" /> : null;
}
