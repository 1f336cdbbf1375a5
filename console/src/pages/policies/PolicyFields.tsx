import css from "@/administration/Administration.module.css";
import type { ItemForm } from "@/administration/useItemForm.ts";
import type { Quotas, WorkspaceItem } from "@/api/policies.ts";
import { Checkbox, Field, TextArea } from "@/components/Field.tsx";
import { type PolicyDraft, QUOTAS } from "./policyRules.ts";

interface Props {
  form: ItemForm<WorkspaceItem, PolicyDraft>;
}

const SWITCHES = [
  { field: "requireApproval", label: "An amendment takes effect only after another person approves it" },
  {
    field: "requireTwoPersonAuth",
    label: "Each amendment needs two people: its author and an approver. This has the same effect as the rule above",
  },
  { field: "requireReasonText", label: "An amendment needs a reason in words, in addition to its category" },
] as const;

/** Name and description of the workspace. */
export function WorkspaceFields({ form: { draft, change, message } }: Props) {
  return (
    <div class={css.fields}>
      <Field label="Name" value={draft.name} onInput={(name) => change({ name })} error={message("name")} />
      <Field
        label="Description"
        value={draft.description}
        onInput={(description) => change({ description })}
        error={message("description")}
      />
    </div>
  );
}

/** Rules of the audit log and its amendments. */
export function ProvenanceFields({ form }: Props) {
  const { draft, change, message, base } = form;
  return (
    <>
      <div class={css.switches}>
        <Checkbox
          label={
            base.provenance ? "Audit log; it cannot be switched off here" : "Audit log; it cannot be switched off later"
          }
          checked={draft.provenance}
          disabled={base.provenance}
          onChange={(provenance) => change({ provenance })}
        />
        {draft.provenance &&
          SWITCHES.map(({ field, label }) => (
            <Checkbox
              key={field}
              label={label}
              checked={draft[field]}
              onChange={(checked) => change({ [field]: checked })}
            />
          ))}
      </div>
      {draft.provenance && (
        <TextArea
          label="Reason categories"
          rows={4}
          hint="One on each line; each amendment has one of them"
          value={draft.reasonCategories}
          onInput={(reasonCategories) => change({ reasonCategories })}
          error={message("policies.provenance.reasonCategories")}
        />
      )}
    </>
  );
}

/** Limits of each property. */
export function QuotaFields({ form: { draft, change, message } }: Props) {
  return (
    <div class={css.fields}>
      {(Object.keys(QUOTAS) as (keyof Quotas)[]).map((field) => (
        <Field
          key={field}
          label={QUOTAS[field]}
          mono
          hint="for each member; empty for the default of the tier"
          value={draft[field]}
          onInput={(text) => change({ [field]: text })}
          error={message(`policies.quotas.${field}`)}
        />
      ))}
    </div>
  );
}
