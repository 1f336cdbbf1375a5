import { useState } from "preact/hooks";
import css from "@/administration/Administration.module.css";
import { ChangePanel } from "@/administration/ChangePanel.tsx";
import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { ReadOnlyNotice } from "@/administration/ReadOnlyNotice.tsx";
import { useItemForm } from "@/administration/useItemForm.ts";
import { api } from "@/api/index.ts";
import { fetchWorkspaceItem, type WorkspaceItem } from "@/api/policies.ts";
import { Facts } from "@/components/Facts.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { showToast } from "@/components/toasts.ts";
import { useResource } from "@/components/useResource.ts";
import { formatCount } from "@/format.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { ProvenanceFields, QuotaFields, WorkspaceFields } from "./PolicyFields.tsx";
import { POLICY_RULES, toDraft } from "./policyRules.ts";
import { SignatureFields } from "./SignatureFields.tsx";

/** The workspace's name, policies and limits. */
export default function Policies() {
  const resource = useResource((signal) => fetchWorkspaceItem(api, signal), []);
  return (
    <Page title="Policies" description="Rules that apply to the whole workspace.">
      <Loaded resource={resource} rows={8}>
        {(workspace) => <Shown loaded={workspace} />}
      </Loaded>
    </Page>
  );
}

function Shown({ loaded }: { loaded: WorkspaceItem }) {
  const [workspace, setWorkspace] = useState(loaded);
  const editable = useHasRights("Workspace.Policy.Manage");
  const form = useItemForm(
    POLICY_RULES,
    workspace,
    toDraft(workspace),
    (saved) => {
      setWorkspace(saved);
      showToast("The policies are saved");
    },
    (reloaded) => reloaded && setWorkspace(reloaded),
  );
  return (
    <>
      {!editable && <ReadOnlyNotice right="Workspace.Policy.Manage" />}
      <ItemFormFrame form={form} editable={editable} createLabel="Save">
        <Panel title="Workspace">
          <WorkspaceFields form={form} />
          <Limits workspace={workspace} />
        </Panel>
        <Panel title="Audit log and amendments">
          <ProvenanceFields form={form} />
        </Panel>
        <Panel title="Electronic signatures">
          <SignatureFields form={form} />
        </Panel>
        <Panel title="Quotas">
          <QuotaFields form={form} />
        </Panel>
      </ItemFormFrame>
      <ChangePanel
        item={workspace}
        audited={{ target: "PlatformConfig", entityTypes: ["Workspace", "Settings"], entityId: workspace.id }}
      />
    </>
  );
}

function Limits({ workspace: { id, tier, limits } }: { workspace: WorkspaceItem }) {
  return (
    <>
      <Facts
        facts={[
          { label: "ID", value: <code>{id}</code> },
          { label: "Tier", value: tier },
          { label: "Requests per minute", value: formatCount(limits.requestsPerMinute) },
          { label: "Concurrent requests", value: formatCount(limits.concurrent) },
        ]}
      />
      <p class={css.soft}>ID, tier and limits cannot be changed here. The limits apply to each member.</p>
    </>
  );
}
