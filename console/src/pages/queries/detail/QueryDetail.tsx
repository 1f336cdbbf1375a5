import { useEffect, useState } from "preact/hooks";
import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import { useResource } from "@/components/useResource.ts";
import type { PageProps } from "@/pageProps.ts";
import { buildHref, navigate, type Route } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { fetchWarmQueries, findAddressed } from "../catalogQueries.ts";
import { WarmRun } from "../run/WarmRun.tsx";
import { Decide } from "./Decide.tsx";
import { Definition } from "./Definition.tsx";
import { Draft } from "./Draft.tsx";
import { History } from "./History.tsx";
import { Remove } from "./Remove.tsx";
import { StateLine } from "./StateLine.tsx";

type View = "run" | "definition" | "history";

/** One query: run, definition and history. The address names it by its lookup, or by its API path, which is replaced. */
export default function QueryDetail({ route }: PageProps) {
  const lookup = route.rest[0] ?? "";
  const resource = useResource(
    async (signal) => findAddressed(await fetchWarmQueries(signal), route.rest),
    [route.rest.join("/")],
  );
  const query = resource.data;
  useEffect(() => {
    if (query && query.lookup !== lookup) {
      const inputs = route.query.toString();
      navigate(`${buildHref("queries", [query.lookup])}${inputs === "" ? "" : `?${inputs}`}`, "replace");
    }
  }, [query]);
  const found = resource.loading || resource.error !== undefined || query !== undefined;
  return (
    <Page
      title={query?.name ?? lookup}
      description={query?.description ?? ""}
      actions={query && <Actions query={query} onChanged={resource.reload} />}
    >
      {found ? (
        <Loaded resource={resource} rows={8}>
          {(shown) => shown && <Views key={shown.updatedAt} query={shown} route={route} />}
        </Loaded>
      ) : (
        <Empty
          title="Query not found"
          action={<Button onClick={() => navigate(buildHref("queries"))}>All queries</Button>}
        >
          If it was removed, the audit log names the person who removed it.
        </Empty>
      )}
    </Page>
  );
}

function Actions({ query, onChanged }: { query: WarmQuery; onChanged: () => void }) {
  const manages = useHasRights("Workspace.WarmQuery.Manage");
  return (
    <>
      {manages && <Remove query={query} onChanged={onChanged} />}
      {manages && (
        <Button icon="pencil" onClick={() => navigate(buildHref("queries", [query.lookup, "edit"]))}>
          Edit
        </Button>
      )}
      <Decide query={query} onChanged={onChanged} />
    </>
  );
}

function Views({ query, route }: { query: WarmQuery; route: Route }) {
  const executes = useHasRights("Workspace.WarmQuery.Execute");
  const tries = useHasRights("Workspace.WarmQuery.AdHoc") && !query.approval;
  const [chosen, setChosen] = useState<View>(query.approval && executes ? "run" : "definition");
  const views: readonly { id: View; title: string }[] = [
    ...(executes || tries ? [{ id: "run" as const, title: "Run" }] : []),
    { id: "definition", title: "Definition" },
    { id: "history", title: "History" },
  ];
  return (
    <>
      <StateLine query={query} />
      <Tabs label="About the query" tabs={views} selected={chosen} onSelect={setChosen}>
        {chosen === "run" && (query.approval ? <WarmRun query={query} route={route} /> : <Draft query={query} />)}
        {chosen === "definition" && <Definition query={query} />}
        {chosen === "history" && (
          <Panel>
            <History query={query} />
          </Panel>
        )}
      </Tabs>
    </>
  );
}
