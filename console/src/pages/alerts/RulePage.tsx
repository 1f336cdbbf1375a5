import { ChangePanel } from "@/administration/ChangePanel.tsx";
import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { ItemPage, type ShownItem } from "@/administration/ItemPage.tsx";
import { ReadOnlyNotice } from "@/administration/ReadOnlyNotice.tsx";
import { RemoveButton } from "@/administration/RemoveButton.tsx";
import { useItemForm } from "@/administration/useItemForm.ts";
import { type AlertRule, alertRulePath } from "@/api/alerts.ts";
import { Facts } from "@/components/Facts.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { showToast } from "@/components/toasts.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { AlertStatus } from "./AlertTable.tsx";
import { announceAlertChange } from "./activeAlerts.ts";
import { RuleFields } from "./RuleFields.tsx";
import { RulePreview } from "./RulePreview.tsx";
import { RuleTrial } from "./RuleTrial.tsx";
import { NEW_RULE, RULE_FORM } from "./ruleDraft.ts";

/** The form that adds a rule. */
export function NewRule() {
  const form = useItemForm(RULE_FORM, null, NEW_RULE, (rule) => {
    showToast(`“${rule.name}” is added`);
    navigate(buildHref("alerts", [rule.lookup]));
  });
  return (
    <Page title="Add rule" description="Raises an alert when a value leaves its limits or a connection sends nothing.">
      <Panel>
        <ItemFormFrame form={form} editable createLabel="Add rule" onCancel={() => navigate(buildHref("alerts"))}>
          <RuleFields form={form} />
        </ItemFormFrame>
      </Panel>
      <RulePreview draft={form.draft} />
    </Page>
  );
}

/** One rule: state, definition, preview and changes. */
export function RulePage({ lookup }: { lookup: string }) {
  const manages = useHasRights("Workspace.Alert.Manage");
  return (
    <ItemPage<AlertRule>
      path={alertRulePath(lookup)}
      name={lookup}
      list={{ page: "alerts", title: "All alerts" }}
      toTitle={({ name }) => name}
      parse={RULE_FORM.parse}
      actions={({ item, reload }) =>
        manages && (
          <RemoveButton
            noun="rule"
            name={item.name}
            path={alertRulePath(item.lookup)}
            etag={item.etag}
            page="alerts"
            onReload={reload}
          >
            <p>Its active alerts are resolved. The history of its alerts remains.</p>
          </RemoveButton>
        )
      }
    >
      {(shown) => <Shown {...shown} editable={manages} />}
    </ItemPage>
  );
}

function Shown({ item, isRemoved, replace, editable }: ShownItem<AlertRule> & { editable: boolean }) {
  const form = useItemForm(
    RULE_FORM,
    item,
    NEW_RULE,
    (saved) => {
      replace(saved);
      announceAlertChange();
      showToast(`“${saved.name}” is saved`);
    },
    replace,
  );
  return (
    <>
      {!editable && <ReadOnlyNotice right="Workspace.Alert.Manage" />}
      <Panel title="State">
        {item.error !== null && (
          <Notice kind="warn" title="The rule cannot be evaluated">
            {item.error}
          </Notice>
        )}
        <Facts
          facts={[
            { label: "State", value: item.enabled ? <AlertStatus state={item.state} /> : "disabled" },
            { label: "Last evaluation", value: <Time at={item.lastEvaluatedAt} /> },
            { label: "Next evaluation", value: <Time at={item.nextEvaluationAt} /> },
          ]}
        />
      </Panel>
      <Panel title="Rule">
        <ItemFormFrame form={form} editable={editable} createLabel="Add rule">
          <RuleFields form={form} />
        </ItemFormFrame>
      </Panel>
      <RulePreview draft={form.draft} />
      {editable && !isRemoved && <RuleTrial key={item.etag} lookup={item.lookup} />}
      <ChangePanel
        isRemoved={isRemoved}
        item={item}
        audited={{ target: "PlatformConfig", entityTypes: ["AlertRule"], entityId: item.lookup }}
      />
    </>
  );
}
