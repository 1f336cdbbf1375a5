import { Button } from "@/components/Button.tsx";
import { go, href } from "@/router/route.ts";
import { useCan } from "@/session/hooks.ts";

/** What one can do without a query: ask, or write one. */
export function ListActions() {
  const asks = useCan("Workspace.WarmQuery.AdHoc");
  const manages = useCan("Workspace.WarmQuery.Manage");
  return (
    <>
      {asks && (
        <Button icon="code" onClick={() => go(href("queries", ["-", "ad-hoc"]))}>
          Ad-hoc query
        </Button>
      )}
      {manages && (
        <Button kind="primary" icon="plus" onClick={() => go(href("queries", ["-", "new"]))}>
          New query
        </Button>
      )}
    </>
  );
}
