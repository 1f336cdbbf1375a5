import { api } from "@/api/index.ts";
import { fetchTables, type Table } from "@/api/tables.ts";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import type { PageProps } from "@/pageProps.ts";
import { Page } from "@/shell/Page.tsx";
import { Containers } from "./Containers.tsx";
import css from "./Data.module.css";
import { Databases } from "./Databases.tsx";
import { Documents } from "./Documents.tsx";

/** `#/data`, `#/data/<database>`, or `#/data/<database>/<store>/<table>`. */
export default function Data({ route }: PageProps) {
  const [database, store, name] = route.rest;
  const known = useResource((signal) => fetchTables(api, signal), []);
  return (
    <Page title="Data" description="Data stores: databases, their containers and published documents.">
      <Loaded resource={known}>
        {(all) => (
          <div class={css.columns}>
            <Databases tables={all} selected={database} />
            <div class={css.content}>
              <Selected all={all} database={database ?? all[0]?.database} store={store} name={name} />
            </div>
          </div>
        )}
      </Loaded>
    </Page>
  );
}

interface Props {
  all: readonly Table[];
  database: string | undefined;
  store: string | undefined;
  name: string | undefined;
}

function Selected({ all, database, store, name }: Props) {
  const table = all.find((each) => each.store === store && each.database === database && each.name === name);
  if (table) {
    return <Documents key={`${store}/${database}/${name}`} table={table} />;
  }
  return database === undefined ? null : (
    <Containers key={database} database={database} tables={all.filter((each) => each.database === database)} />
  );
}
