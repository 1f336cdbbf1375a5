import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { rememberKql } from "../rememberedKql.ts";
import { declareParameters } from "./declaredParameters.ts";

/** Why a draft does not run, and how to try its KQL all the same. */
export function Draft({ query }: { query: WarmQuery }) {
  const asks = useHasRights("Workspace.WarmQuery.AdHoc");
  const attempt = () => {
    rememberKql(declareParameters(query));
    navigate(buildHref("queries", ["-", "ad-hoc"]));
  };
  return (
    <Panel>
      <Empty title="A draft does not run" action={asks && <Button onClick={attempt}>Try its KQL ad hoc</Button>}>
        Somebody with Workspace.WarmQuery.Approve, other than {query.editedBy} who edited it last, approves it first.
      </Empty>
    </Panel>
  );
}
