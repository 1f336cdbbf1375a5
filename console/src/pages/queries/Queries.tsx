import { Empty } from "@/components/Empty.tsx";
import type { PageProps } from "@/pageProps.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { useViewFocus } from "@/shell/useViewFocus.ts";
import { AdHoc } from "./AdHoc.tsx";
import { QueryDetail } from "./detail/QueryDetail.tsx";
import { EditQuery, NewQuery } from "./edit/QueryEditor.tsx";
import { ListActions } from "./ListActions.tsx";
import { QueryList } from "./QueryList.tsx";
import { LookupRun } from "./run/LookupRun.tsx";

/**
 * `#/queries` lists, `#/queries/<lookup>` shows one, `#/queries/<lookup>/edit` changes it; `#/queries/-/new` and
 * `#/queries/-/ad-hoc` write: no lookup is `-`.
 */
export default function Queries({ route }: PageProps) {
  const [lookup, view] = route.rest;
  const reads = useHasRights("Workspace.Catalog.Read");
  const executes = useHasRights("Workspace.WarmQuery.Execute");
  const asks = useHasRights("Workspace.WarmQuery.AdHoc");
  const manages = useHasRights("Workspace.WarmQuery.Manage");
  useViewFocus(route.rest.join("/"));
  if (lookup === "-") {
    return view === "new" && manages ? (
      <NewQuery key="new" route={route} />
    ) : asks ? (
      <AdHoc key="ad-hoc" route={route} />
    ) : (
      <AccessDenied />
    );
  }
  if (reads && lookup !== undefined) {
    const edits = view === "edit" && manages;
    return edits ? (
      <EditQuery key={`${lookup}/edit`} lookup={lookup} />
    ) : (
      <QueryDetail key={lookup} lookup={lookup} route={route} />
    );
  }
  if (reads) {
    return <QueryList key="list" route={route} />;
  }
  return (
    <Page key="lookup" title="Queries" description="KQL queries over the plant's telemetry." actions={<ListActions />}>
      {executes ? <LookupRun route={route} /> : <NoListing />}
    </Page>
  );
}

function NoListing() {
  return (
    <Empty title="Your token cannot list queries">
      Listing queries needs Workspace.Catalog.Read; running one needs Workspace.WarmQuery.Execute.
    </Empty>
  );
}

function AccessDenied() {
  return (
    <Page key="closed" title="Queries">
      <Empty title="You don't have access to this page">
        Ad-hoc queries need Workspace.WarmQuery.AdHoc, new ones Workspace.WarmQuery.Manage. Sign in with a key that
        carries them.
      </Empty>
    </Page>
  );
}
