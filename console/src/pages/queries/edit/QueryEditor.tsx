import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import type { PageProps } from "@/pageProps.ts";
import { Page } from "@/shell/Page.tsx";
import { fetchWarmQuery } from "../catalogQueries.ts";
import { recallKql } from "../rememberedKql.ts";
import { createDraft, toDraft } from "./draft.ts";
import { QueryForm } from "./QueryForm.tsx";

/** The form for the query of the address, or for a new one at `-`. */
export default function QueryEditor({ route }: PageProps) {
  const [lookup = "-"] = route.rest;
  return lookup === "-" ? <NewQuery route={route} /> : <EditQuery lookup={lookup} />;
}

/** The form for a new query, with the text of the ad-hoc editor if the reader saved it there. */
function NewQuery({ route }: PageProps) {
  const kql = route.query.get("from") === "ad-hoc" ? recallKql() : undefined;
  return (
    <Page title="New query" description="It is a draft until another person approves it.">
      <QueryForm begin={createDraft(kql)} stands={null} />
    </Page>
  );
}

/** The form that edits a query, which becomes a draft again. */
function EditQuery({ lookup }: { lookup: string }) {
  const resource = useResource((signal) => fetchWarmQuery(lookup, signal).then((query) => query ?? null), [lookup]);
  return (
    <Page
      title="Edit query"
      description={`${lookup}: each edit makes it a draft again, until another person approves it.`}
    >
      <Loaded resource={resource} rows={10}>
        {(query) =>
          query === null ? (
            <Empty title="Query not found">It may have been removed.</Empty>
          ) : (
            <QueryForm key={query.etag} begin={toDraft(query)} stands={query} />
          )
        }
      </Loaded>
    </Page>
  );
}
