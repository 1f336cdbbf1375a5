import css from "@/administration/Administration.module.css";
import type { ItemForm } from "@/administration/useItemForm.ts";
import type { Member } from "@/api/team.ts";
import { Checkbox, Field, Select } from "@/components/Field.tsx";
import { RightsList } from "@/components/rights/RightsList.tsx";
import { ScopeTree } from "@/components/rights/ScopeTree.tsx";
import { useIdentity } from "@/session/hooks.ts";
import { RIGHT_COUNT, type Right } from "@/session/rights.ts";
import { ROLE_RIGHTS } from "@/session/roles.ts";
import { countRights, listExtraRights, listRoles, type MemberDraft } from "./memberRules.ts";

interface Props {
  form: ItemForm<Member, MemberDraft>;
  editable: boolean;
}

/** The fields of a member. */
export function MemberFields({ form, editable }: Props) {
  const { draft, change, message, isNew } = form;
  const held = useIdentity().accessRights;
  const roles = listRoles(held, draft.role);
  return (
    <>
      <div class={css.fields}>
        <Field
          label="ID"
          mono
          disabled={!isNew}
          hint={isNew ? "such as an e-mail address; it cannot be changed later" : "it cannot be changed"}
          value={draft.id}
          onInput={(id) => change({ id })}
          error={message("id")}
        />
        <Field label="Name" value={draft.name} onInput={(name) => change({ name })} error={message("name")} />
        <Select
          label="Role"
          value={draft.role}
          options={roles.map((role) => ({ value: role, label: `${role}: ${ROLE_RIGHTS[role].length} rights` }))}
          onChange={(role) => change({ role })}
          hint={
            roles.length < 3
              ? "You can give only roles whose rights you have"
              : "Viewer can read; Admin can do everything"
          }
          error={message("role")}
        />
        <Field
          label="Object ID"
          mono
          hint="of the person's account in Entra ID; empty if there is none"
          value={draft.oid}
          onInput={(oid) => change({ oid })}
          error={message("oid")}
        />
      </div>
      <Checkbox
        label="Service: a program. It cannot approve, and does not count as an administrator"
        checked={draft.service}
        onChange={(service) => change({ service })}
        disabled={!editable}
      />
      <Rights form={form} editable={editable} held={held} />
    </>
  );
}

function Rights({ form, editable, held }: Props & { held: readonly Right[] }) {
  const { draft, change, message } = form;
  const offered = listExtraRights(held, draft.role);
  const ofRole = draft.rights.filter((right) => !offered.includes(right));
  const chosen = new Set(draft.rights.filter((right) => offered.includes(right)));
  return (
    <>
      {!editable && (
        <div>
          <strong>Extra rights</strong>
          <p>
            <RightsList rights={draft.rights} />
          </p>
        </div>
      )}
      {editable && offered.length > 0 && (
        <ScopeTree
          label="Extra rights"
          held={offered}
          chosen={chosen}
          onChange={(rights) => change({ rights: [...ofRole, ...rights].sort() })}
          error={message("rights")}
        />
      )}
      <p class={css.soft} role="status">
        {draft.name || "The member"} has {countRights(draft)} of {RIGHT_COUNT} rights
        {editable && ". Choose the smallest role and add only rights that are needed"}.
      </p>
    </>
  );
}
