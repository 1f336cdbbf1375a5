import { isOutdated } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";

interface Props {
  /** The error of the action. */
  error: unknown;
  /** The rejected action as a participle: "approved". */
  undone: string;
  /** Shows the current version. */
  onLook: () => void;
}

/** The error of an action; after a conflict with a link to the newer version. */
export function Refusal({ error, undone, onLook }: Props) {
  if (!isOutdated(error)) {
    return <ErrorNotice error={error} />;
  }
  const title = error.isPossiblyOwn
    ? "The query changed meanwhile, possibly by your earlier attempt. This attempt changed nothing."
    : `Another person changed the query meanwhile. It was not ${undone}.`;
  return (
    <Notice kind="bad" title={title}>
      <p>
        <code>{error.code}</code> · request <code>{error.requestId}</code>
      </p>
      <div>
        <Button onClick={onLook}>Show the current version</Button>
      </div>
    </Notice>
  );
}
