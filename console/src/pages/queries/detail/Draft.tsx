import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { rememberKql } from "../rememberedKql.ts";
import { DraftTrial } from "./DraftTrial.tsx";
import { declareParameters } from "./declaredParameters.ts";

/** Explains why a draft cannot run; with the right to ad-hoc queries, its text can be run as one. */
export function Draft({ query }: { query: WarmQuery }) {
  const asks = useHasRights("Workspace.WarmQuery.AdHoc");
  const edit = () => {
    rememberKql(declareParameters(query));
    navigate(buildHref("queries", ["-", "ad-hoc"]));
  };
  return (
    <>
      <Panel>
        <Empty
          title="A draft cannot run"
          action={asks && <Button onClick={edit}>Edit a copy as an ad-hoc query</Button>}
        >
          {query.rejection
            ? `${query.rejection.rejectedBy} rejected it. Change it; then another person can approve it.`
            : `${query.editedBy} edited it last; another person with Workspace.WarmQuery.Approve must approve it first.`}
        </Empty>
      </Panel>
      {asks && <DraftTrial query={query} />}
    </>
  );
}
