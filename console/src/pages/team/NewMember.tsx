import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { useItemForm } from "@/administration/useItemForm.ts";
import { showToast } from "@/components/toasts.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { MemberFields } from "./MemberFields.tsx";
import { MEMBER_RULES, NEW_MEMBER } from "./memberRules.ts";

/** The form that adds a member. */
export function NewMember() {
  const form = useItemForm(MEMBER_RULES, null, NEW_MEMBER, (member) => {
    showToast(`“${member.name}” is a member now`);
    navigate(buildHref("team", [member.id]));
  });
  return (
    <Page title="Add member" description="A person or a program that may use this workspace.">
      <Panel>
        <ItemFormFrame form={form} editable createLabel="Add member" onCancel={() => navigate(buildHref("team"))}>
          <MemberFields form={form} editable />
        </ItemFormFrame>
      </Panel>
    </Page>
  );
}
