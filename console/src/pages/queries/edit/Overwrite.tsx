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
  /** Goes on with what stands now, in place of the draft. */
  onTake: (now: WarmQuery) => void;
}

/** Shows what somebody else made of the query while this draft was written, and lets its author decide. */
export function Overwrite({ draft, overtaken: { now }, onClose, onOverwrite, onTake }: Props) {
  const deed = now ? "Overwrite" : "Save it anew";
  return (
    <Dialog
      title={now ? "Somebody else changed the query meanwhile" : "Somebody else removed the query meanwhile"}
      wide
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Back to my text</Button>
          {now && <Button onClick={() => onTake(now)}>Take the newer text, drop mine</Button>}
          <Button kind="danger" onClick={onOverwrite}>
            {deed}
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
              . Nothing of yours is stored yet. This is what saving yours would change of what stands now:
            </p>
            <JsonDiff before={toSentBody(now)} after={toBody(draft)} />
          </>
        ) : (
          <p>Nothing of yours is stored yet. Saving it makes the query anew, as a draft.</p>
        )}
      </div>
    </Dialog>
  );
}
