import css from "@/administration/Administration.module.css";
import type { ItemForm } from "@/administration/useItemForm.ts";
import type { WorkspaceItem } from "@/api/policies.ts";
import { Checkbox, Field, TextArea } from "@/components/Field.tsx";
import type { PolicyDraft } from "./policyRules.ts";

interface Props {
  form: ItemForm<WorkspaceItem, PolicyDraft>;
}

/** Rules of electronic signatures. */
export function SignatureFields({ form: { draft, change, message } }: Props) {
  return (
    <>
      <div class={css.switches}>
        <Checkbox
          label="Approvals and rejections of amendments need a signature; every amendment then waits for approval"
          checked={draft.signAmendments}
          onChange={(signAmendments) => change({ signAmendments })}
        />
        <Checkbox
          label="Approvals and rejections of queries need a signature"
          checked={draft.signQueries}
          onChange={(signQueries) => change({ signQueries })}
        />
      </div>
      <div class={css.fields}>
        <Field
          label="Maximum age of the sign-in, in seconds"
          mono
          hint="With an older sign-in, people sign in again before they sign. 0: each signature needs a new sign-in"
          value={draft.maxAgeSeconds}
          onInput={(maxAgeSeconds) => change({ maxAgeSeconds })}
          error={message("policies.signatures.maxAgeSeconds")}
        />
      </div>
      <TextArea
        label="Meanings"
        rows={4}
        hint="One on each line; a rejection always has the meaning “rejection”"
        value={draft.meanings}
        onInput={(meanings) => change({ meanings })}
        error={message("policies.signatures.meanings")}
      />
    </>
  );
}
