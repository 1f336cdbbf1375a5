import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { rememberKql } from "../rememberedKql.ts";
import { declareParameters } from "./declaredParameters.ts";

/** Explains why a draft cannot run, with a link to try its KQL ad hoc. */
export function Draft({ query }: { query: WarmQuery }) {
  const asks = useHasRights("Workspace.WarmQuery.AdHoc");
  const attempt = () => {
    rememberKql(declareParameters(query));
    navigate(buildHref("queries", ["-", "ad-hoc"]));
  };
  return (
    <Panel>
      <Empty title="A draft cannot run" action={asks && <Button onClick={attempt}>Try its KQL ad hoc</Button>}>
        A person with Workspace.WarmQuery.Approve, other than {query.editedBy} (the last editor), must approve it first.
      </Empty>
    </Panel>
  );
}
