import { fetchConnectionItems } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { isPermanent } from "@/api/problem.ts";
import { NavCount } from "@/components/NavCount.tsx";
import { usePolling } from "@/components/usePolling.ts";
import { formatCount } from "@/format.ts";
import { isFailing } from "./failing.ts";

const MINUTE_MS = 60_000;

/** The number of connections with errors, in the navigation. */
export function ConnectionBadge() {
  const { data } = usePolling(
    async (signal) => (await fetchConnectionItems(api, signal)).filter(isFailing).length,
    ({ error }) => (isPermanent(error) ? 10 * MINUTE_MS : MINUTE_MS),
    [],
  );
  return data ? <NavCount text={formatCount(data)} of="with errors" /> : null;
}
