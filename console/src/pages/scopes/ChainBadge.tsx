import { NavCount } from "@/components/NavCount.tsx";
import { formatCount } from "@/format.ts";
import { useBrokenChains } from "./useBrokenChains.ts";

/** The number of chains that the last verification found broken, in the navigation. */
export function ChainBadge() {
  const { data } = useBrokenChains();
  return data?.length ? <NavCount text={formatCount(data.length)} of="broken" /> : null;
}
