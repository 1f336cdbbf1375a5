import type { PageProps } from "@/pageProps.ts";
import { BrokenChains } from "@/pages/scopes/BrokenChains.tsx";
import { useBrokenChains } from "@/pages/scopes/useBrokenChains.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { Decisions } from "./Decisions.tsx";
import { ChainState, FailingConnections, FiringAlerts } from "./Troubles.tsx";
import { useReader } from "./useReader.ts";

/** The first page: decisions that wait, firing alerts, connections with errors, and broken chains. */
export default function Inbox(_: PageProps) {
  const { readsQueries, readsAmendments } = useReader();
  const readsAlerts = useHasRights("Workspace.Alert.Read");
  const readsChains = useHasRights("Workspace.Provenance.Read");
  const broken = useBrokenChains({ isEnabled: readsChains });
  return (
    <Page title="Inbox" description="What needs attention now: decisions, alerts, connections and audit chains.">
      {readsChains && <BrokenChains broken={broken} />}
      {(readsQueries || readsAmendments) && <Decisions />}
      {readsAlerts && <FiringAlerts />}
      {readsQueries && <FailingConnections />}
      {readsChains && <ChainState broken={broken} />}
    </Page>
  );
}
