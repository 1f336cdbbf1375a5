import { Notice } from "@/components/Notice.tsx";
import { formatQuantity } from "@/format.ts";

/**
 * The warning about records that were removed from the end of a chain; nothing if there are none.
 * @param covered the result of `findRemovedEnd`
 */
export function RemovedEndNotice({ covered }: { covered: number | null }) {
  if (covered === 0) {
    return null;
  }
  if (covered === null) {
    return (
      <Notice kind="warn" title="The end of this chain was not checked.">
        The newest signed checkpoint, which shows whether records were removed from the end, could not be read.
      </Notice>
    );
  }
  return (
    <Notice kind="alarm" title="The chain ends before its newest signed checkpoint.">
      The checkpoint covers {formatQuantity(covered, "record")}: records were removed from the end, or the last RecordID
      was altered. “Verify chain” shows what to do.
    </Notice>
  );
}
