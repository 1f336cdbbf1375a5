import { useLayoutEffect, useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { fetchDocument } from "@/api/workspaceDocument.ts";
import { Tabs } from "@/components/Tabs.tsx";
import { useResource } from "@/components/useResource.ts";
import type { PageProps } from "@/pageProps.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { ApplyDocument } from "./ApplyDocument.tsx";
import { CurrentDocument } from "./CurrentDocument.tsx";
import { usePlanning } from "./usePlanning.ts";

const CURRENT = { id: "current", title: "Current document" } as const;
const APPLY = { id: "apply", title: "Apply a document" } as const;

type View = typeof CURRENT.id | typeof APPLY.id;

/** The page of the workspace document: the current one, and the plan and application of another. */
export default function WorkspaceDocument({ route }: PageProps) {
  const manages = useHasRights("Workspace.Catalog.Manage");
  const named = manages && route.rest[0] === APPLY.id ? APPLY.id : CURRENT.id;
  const [view, setView] = useState<View>(named);
  useLayoutEffect(() => setView(named), [named]);
  const current = useResource((signal) => fetchDocument(api, signal), [view === CURRENT.id]);
  const planning = usePlanning();
  const unsaved = planning.text !== planning.saved;
  useUnsavedWarning(unsaved);
  const select = (chosen: View) => {
    setView(chosen);
    // A new address would ask about unsaved text, although another tab does not lose it.
    if (!unsaved) {
      navigate(buildHref("document", chosen === CURRENT.id ? [] : [chosen]), "replace");
    }
  };
  return (
    <Page
      title="Workspace document"
      description="The whole workspace as one YAML document: team, connections, surfaces, queries, data stores and policies."
    >
      {manages ? (
        <Tabs label="Views" tabs={[CURRENT, APPLY]} selected={view} onSelect={select}>
          {view === CURRENT.id ? (
            <CurrentDocument resource={current} />
          ) : (
            <ApplyDocument planning={planning} current={current.data} />
          )}
        </Tabs>
      ) : (
        <CurrentDocument resource={current} />
      )}
    </Page>
  );
}
