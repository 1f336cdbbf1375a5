import { Notice } from "@/components/Notice.tsx";
import type { Right } from "@/session/rights.ts";

/** Explains why the values cannot be changed. */
export function ReadOnlyNotice({ right }: { right: Right }) {
  return (
    <Notice title="You can see this, but not change it.">
      Changes need <code>{right}</code>.
    </Notice>
  );
}
