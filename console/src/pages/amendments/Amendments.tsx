import { useLayoutEffect, useState } from "preact/hooks";
import { Empty } from "@/components/Empty.tsx";
import { ScopeField } from "@/components/ScopeField.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import type { PageProps } from "@/pageProps.ts";
import { BrokenChain } from "@/pages/scopes/BrokenChains.tsx";
import { rememberScope } from "@/proof/scopes.ts";
import { navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { AllAmendments } from "./AllAmendments.tsx";
import { Entity } from "./Entity.tsx";
import { NewAmendmentTab } from "./NewAmendmentTab.tsx";
import { buildEntityAddress, buildViewAddress, type Place, parsePlace, type View } from "./place.ts";
import { Queue } from "./Queue.tsx";

const TABS: readonly { id: View; title: string }[] = [
  { id: "queue", title: "To decide" },
  { id: "all", title: "All amendments" },
  { id: "entity", title: "Entity" },
];

/** The amendments page: create, decide and read amendments. */
export default function Amendments({ route }: PageProps) {
  const place = parsePlace(route);
  const readsChains = useHasRights("Workspace.Provenance.Read");
  const [scope, setScope] = useState(place.scope);
  // Before the browser paints, because a later effect would replace a scope that the reader already types.
  useLayoutEffect(() => {
    setScope(place.scope);
    rememberScope(place.scope);
  }, [place.scope]);
  return (
    <Page title="Amendments" description="Amendments never overwrite the original. A second person approves them.">
      <ScopeField
        target="DomainAmendments"
        value={scope}
        onInput={setScope}
        onOpen={(chosen) => navigate(buildViewAddress(chosen, place.view))}
      />
      {place.scope === "" ? (
        <Empty title="Which scope?">Choose or enter the scope of the amendments: a line, a batch, a system.</Empty>
      ) : (
        <>
          {readsChains && <BrokenChain chain={{ target: "DomainAmendments", scopeKey: place.scope }} />}
          <Views key={place.scope} place={place} />
        </>
      )}
    </Page>
  );
}

function Views({ place }: { place: Place }) {
  const canCreate = useHasRights("Workspace.Amendment.Create");
  const tabs = canCreate ? [...TABS, { id: "new" as const, title: "New amendment" }] : TABS;
  const view = place.view === "new" && !canCreate ? "queue" : place.view;
  return (
    <Tabs
      label="Views"
      tabs={tabs}
      selected={view}
      onSelect={(chosen) => navigate(buildViewAddress(place.scope, chosen))}
    >
      {view === "queue" && <Queue key={place.record} scope={place.scope} from={place.record} />}
      {view === "all" && <AllAmendments scope={place.scope} />}
      {view === "entity" && (
        <Entity
          key={place.entity}
          scope={place.scope}
          entity={place.entity}
          onOpen={(entity) => navigate(buildEntityAddress(place.scope, entity))}
        />
      )}
      {view === "new" && <NewAmendmentTab key={place.record} scope={place.scope} record={place.record} />}
    </Tabs>
  );
}
