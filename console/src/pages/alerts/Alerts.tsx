import { useAddressedView } from "@/administration/useAddressedView.ts";
import { fetchAlertRules } from "@/api/alerts.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import { useResource } from "@/components/useResource.ts";
import type { PageProps } from "@/pageProps.ts";
import { buildHref, navigate, type Route } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { ActiveTab } from "./ActiveTab.tsx";
import { HistoryTab } from "./HistoryTab.tsx";
import { NewRule, RulePage } from "./RulePage.tsx";
import { RuleTab } from "./RuleTab.tsx";

const TABS = [
  { id: "active", title: "Active" },
  { id: "history", title: "History" },
  { id: "rules", title: "Rules" },
] as const;
type TabId = (typeof TABS)[number]["id"];

/** Alerts, their history, and the rules that raise them. */
export default function Alerts({ route }: PageProps) {
  const shown = useAddressedView(route, "Workspace.Alert.Manage");
  if (shown.view === "item") {
    return <RulePage key={shown.key} lookup={shown.key} />;
  }
  return shown.view === "new" ? <NewRule /> : <AlertLists route={route} />;
}

function AlertLists({ route }: { route: Route }) {
  const manages = useHasRights("Workspace.Alert.Manage");
  const rules = useResource((signal) => fetchAlertRules(api, signal), []);
  const selected = TABS.find((tab) => tab.id === route.query.get("tab"))?.id ?? "active";
  const select = (tab: TabId) => navigate(buildHref("alerts", [], tab === "active" ? {} : { tab }), "replace");
  return (
    <Page
      title="Alerts"
      description="Values beyond their limits, and connections that send nothing."
      actions={
        manages && (
          <Button kind="primary" icon="plus" onClick={() => navigate(buildHref("alerts", [], { view: "new" }))}>
            Add rule
          </Button>
        )
      }
    >
      <Tabs label="Lists of alerts" tabs={TABS} selected={selected} onSelect={select}>
        {selected === "active" && <ActiveTab />}
        {selected === "history" && <HistoryTab />}
        {selected === "rules" && <RuleTab rules={rules} />}
      </Tabs>
    </Page>
  );
}
