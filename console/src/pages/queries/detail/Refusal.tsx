import { isOutdated } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";

interface Props {
  /** Whatever a deed was refused with. */
  error: unknown;
  /** What was not done, as a participle: "approved". */
  undone: string;
  /** Shows what stands now. */
  onLook: () => void;
}

/** A refusal; where somebody else changed the query after it was read, with the way to the newer text. */
export function Refusal({ error, undone, onLook }: Props) {
  if (!isOutdated(error)) {
    return <ErrorNotice error={error} />;
  }
  return (
    <Notice kind="bad" title={`Somebody changed the query while you looked at it, so that nothing was ${undone}.`}>
      <p>
        <code>{error.code}</code> · request <code>{error.requestId}</code>
      </p>
      <div>
        <Button onClick={onLook}>Look at what stands there now</Button>
      </div>
    </Notice>
  );
}
