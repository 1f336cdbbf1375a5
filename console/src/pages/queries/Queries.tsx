import { Empty } from "@/components/Empty.tsx";
import type { PageProps } from "@/pageProps.ts";
import { useHasRights } from "@/session/hooks.ts";
import { LoadedPage } from "@/shell/LoadedPage.tsx";
import { Page } from "@/shell/Page.tsx";
import { useViewFocus } from "@/shell/useViewFocus.ts";
import { ListActions } from "./ListActions.tsx";
import { QueryList } from "./QueryList.tsx";

// The list needs no editor, chart or signature, so the views that do are loaded when they are opened.
const AD_HOC = { title: "Ad-hoc query", load: () => import("./AdHoc.tsx") };
const DETAIL = { title: "Query", load: () => import("./detail/QueryDetail.tsx") };
const EDITOR = { title: "Query", load: () => import("./edit/QueryEditor.tsx") };
const LOOKUP_RUN = { title: "Queries", load: () => import("./run/LookupRun.tsx") };

/**
 * `#/queries` lists, `#/queries/<lookup>` and `#/queries/<API path>` show one, `#/queries/<lookup>/edit` changes it;
 * `#/queries/-/new` and `#/queries/-/ad-hoc` write: no lookup is `-`.
 */
export default function Queries({ route }: PageProps) {
  const [lookup, view, ...more] = route.rest;
  const reads = useHasRights("Workspace.Catalog.Read");
  const executes = useHasRights("Workspace.WarmQuery.Execute");
  const manages = useHasRights("Workspace.WarmQuery.Manage");
  useViewFocus(route.rest.join("/"));
  if (lookup === "-") {
    return <Unnamed route={route} />;
  }
  if (reads && lookup !== undefined) {
    const edits = view === "edit" && more.length === 0 && manages;
    return <LoadedPage key={edits ? `${lookup}/edit` : lookup} entry={edits ? EDITOR : DETAIL} route={route} />;
  }
  if (reads) {
    return <QueryList key="list" route={route} />;
  }
  return executes ? <LoadedPage key="lookup" entry={LOOKUP_RUN} route={route} /> : <NoListing />;
}

/** The form for a new query, or the editor for ad-hoc queries. */
function Unnamed({ route }: PageProps) {
  const asks = useHasRights("Workspace.WarmQuery.AdHoc");
  const manages = useHasRights("Workspace.WarmQuery.Manage");
  if (route.rest[1] === "new" && manages) {
    return <LoadedPage key="new" entry={EDITOR} route={route} />;
  }
  return asks ? <LoadedPage key="ad-hoc" entry={AD_HOC} route={route} /> : <AccessDenied />;
}

function NoListing() {
  return (
    <Page title="Queries" actions={<ListActions />}>
      <Empty title="Your token cannot list queries">
        To list queries, you need Workspace.Catalog.Read. To run one, you need Workspace.WarmQuery.Execute.
      </Empty>
    </Page>
  );
}

function AccessDenied() {
  return (
    <Page title="Queries">
      <Empty title="You don't have access to this page">
        Ad-hoc queries need Workspace.WarmQuery.AdHoc, and new queries need Workspace.WarmQuery.Manage. Sign in with a
        key that has the right.
      </Empty>
    </Page>
  );
}
