import { Button } from "@/components/Button.tsx";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";

/** Links to the ad-hoc editor and to a new query. */
export function ListActions() {
  const asks = useHasRights("Workspace.WarmQuery.AdHoc");
  const manages = useHasRights("Workspace.WarmQuery.Manage");
  return (
    <>
      {asks && (
        <Button icon="code" onClick={() => navigate(buildHref("queries", ["-", "ad-hoc"]))}>
          Ad-hoc query
        </Button>
      )}
      {manages && (
        <Button kind="primary" icon="plus" onClick={() => navigate(buildHref("queries", ["-", "new"]))}>
          New query
        </Button>
      )}
    </>
  );
}
