import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Time } from "@/components/Time.tsx";
import { type QueryDraft, toBody } from "./draft.ts";
import css from "./QueryEditor.module.css";
import { type EditConflict, toSentBody } from "./saving.ts";

interface Props {
  draft: QueryDraft;
  overtaken: EditConflict;
  onClose: () => void;
  onOverwrite: () => void;
  /** Replaces the draft by the current version. */
  onTake: (now: WarmQuery) => void;
}

/** Shows a conflicting edit of another person, and lets the author choose. */
export function Overwrite({ draft, overtaken, onClose, onOverwrite, onTake }: Props) {
  const { now } = overtaken;
  return (
    <Dialog
      title={describeConflict(overtaken)}
      wide
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Back to my text</Button>
          {now && <Button onClick={() => onTake(now)}>Use the newer text, discard mine</Button>}
          <Button kind="danger" onClick={onOverwrite}>
            {now ? "Overwrite" : "Save as new"}
          </Button>
        </>
      }
    >
      <div class={css.form}>
        {now ? (
          <>
            <p>
              {now.editedBy} saved it last, <Time at={now.updatedAt} />
              {now.approval && (
                <>
                  ; {now.approval.approvedBy} approved it, <Time at={now.approval.approvedAt} />
                </>
              )}
              . Your text is not saved yet. Saving it would change the current version as follows:
            </p>
            <JsonDiff before={toSentBody(now)} after={toBody(draft)} />
          </>
        ) : (
          <p>Your text is not saved yet. Saving it creates the query again, as a draft.</p>
        )}
      </div>
    </Dialog>
  );
}

function describeConflict({ now, isPossiblyOwn }: EditConflict): string {
  if (now === null) {
    return "Another person removed the query";
  }
  return isPossiblyOwn
    ? "The query changed meanwhile, possibly by your earlier attempt"
    : "Another person changed the query";
}
