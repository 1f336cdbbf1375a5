import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { go, href } from "@/router/route.ts";
import { useCan } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { keepKql } from "../kept.ts";
import { declared } from "./declared.ts";

/** Why a draft does not run, and how to try its KQL all the same. */
export function Draft({ query }: { query: WarmQuery }) {
  const asks = useCan("Workspace.WarmQuery.AdHoc");
  const attempt = () => {
    keepKql(declared(query));
    go(href("queries", ["-", "ad-hoc"]));
  };
  return (
    <Panel>
      <Empty title="A draft does not run" action={asks && <Button onClick={attempt}>Try its KQL ad hoc</Button>}>
        Somebody with Workspace.WarmQuery.Approve, other than {query.editedBy} who edited it last, approves it first.
      </Empty>
    </Panel>
  );
}
