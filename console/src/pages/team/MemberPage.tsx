import css from "@/administration/Administration.module.css";
import { ChangePanel } from "@/administration/ChangePanel.tsx";
import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { ItemPage, type ShownItem } from "@/administration/ItemPage.tsx";
import { ReadOnlyNotice } from "@/administration/ReadOnlyNotice.tsx";
import { useItemForm } from "@/administration/useItemForm.ts";
import { type Member, memberPath } from "@/api/team.ts";
import { Notice } from "@/components/Notice.tsx";
import { RightsList } from "@/components/rights/RightsList.tsx";
import { showToast } from "@/components/toasts.ts";
import { buildHref } from "@/router/route.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import { listMissingRights } from "@/session/rights.ts";
import { Panel } from "@/shell/Page.tsx";
import { MemberActions } from "./MemberActions.tsx";
import { MemberFields } from "./MemberFields.tsx";
import { MEMBER_RULES, NEW_MEMBER } from "./memberRules.ts";

/** One member: definition, actions and changes. */
export function MemberPage({ id }: { id: string }) {
  return (
    <ItemPage<Member>
      path={memberPath(id)}
      name={id}
      list={{ page: "team", title: "All members" }}
      toTitle={({ name }) => name}
      actions={(shown) => <MemberActions {...shown} />}
    >
      {(shown) => <Shown {...shown} />}
    </ItemPage>
  );
}

function Shown({ item, isRemoved, replace }: ShownItem<Member>) {
  const who = useIdentity();
  const manages = useHasRights("Workspace.Team.Manage");
  const missing = listMissingRights(who.accessRights, item.accessRights);
  const editable = manages && missing.length === 0;
  const form = useItemForm(
    MEMBER_RULES,
    item,
    NEW_MEMBER,
    (saved) => {
      replace(saved);
      showToast(`“${saved.name}” is saved`);
    },
    replace,
  );
  return (
    <>
      {!item.enabled && (
        <Notice kind="warn" title="This member is disabled.">
          The service rejects their API keys and tokens. Audit records still name them.
        </Notice>
      )}
      {!manages && <ReadOnlyNotice right="Workspace.Team.Manage" />}
      {manages && !editable && (
        <Notice title="You cannot change this member, because it has rights that you do not have.">
          <RightsList rights={missing} />
        </Notice>
      )}
      <Panel title="Member">
        <ItemFormFrame form={form} editable={editable} createLabel="Add member">
          <MemberFields form={form} editable={editable} />
        </ItemFormFrame>
        {item.id === who.principal && manages && (
          <p class={css.soft}>This is you: only another administrator can disable or remove you.</p>
        )}
        {!isRemoved && <CredentialHint member={item} />}
      </Panel>
      <ChangePanel
        isRemoved={isRemoved}
        item={item}
        audited={{ target: "AccessControl", entityTypes: ["Member"], entityId: item.id }}
      />
    </>
  );
}

/** The next step after adding a member: its first credential. */
function CredentialHint({ member }: { member: Member }) {
  return useHasRights("Workspace.Keys.Manage") && member.enabled ? (
    <p class={css.soft}>
      {member.oid ? "Signs in with the account in Entra ID or with an API key. " : "Signs in with an API key. "}
      <a href={buildHref("keys", ["keys"])}>Create an API key on the page Keys and tokens</a>.
    </p>
  ) : null;
}
