import { Tabs } from "@/components/Tabs.tsx";
import type { PageProps } from "@/pageProps.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { BrokenChains } from "./BrokenChains.tsx";
import { Bundles } from "./Bundles.tsx";
import { ScopeList } from "./ScopeList.tsx";
import { useBrokenChains } from "./useBrokenChains.ts";

const SCOPES = { id: "scopes", title: "Scopes" } as const;
const BUNDLES = { id: "bundles", title: "Bundles" } as const;

/** The page of all audit chains, and of bundles that prove them without the service. */
export default function Scopes({ route }: PageProps) {
  const exports = useHasRights("Workspace.Provenance.Export");
  const view = exports && route.rest[0] === BUNDLES.id ? BUNDLES.id : SCOPES.id;
  const broken = useBrokenChains();
  return (
    <Page
      title="Audit scopes"
      description="Every chain of the audit log, with its size and the verdict of its last verification."
    >
      <BrokenChains broken={broken} />
      {exports ? (
        <Tabs
          label="Views"
          tabs={[SCOPES, BUNDLES]}
          selected={view}
          onSelect={(chosen) => navigate(buildHref("scopes", chosen === SCOPES.id ? [] : [chosen]), "replace")}
        >
          {view === SCOPES.id ? <ScopeList route={route} /> : <Bundles />}
        </Tabs>
      ) : (
        <ScopeList route={route} />
      )}
    </Page>
  );
}
