import type { PageProps } from "@/pageProps.ts";
import { useViewFocus } from "@/shell/useViewFocus.ts";
import { TableList } from "./TableList.tsx";
import { TablePage } from "./TablePage.tsx";

/** `#/tables` lists, `#/tables/<database>/<container>` shows one table. */
export default function Tables({ route }: PageProps) {
  const [database, name] = route.rest;
  useViewFocus(route.rest.join("/"));
  return database !== undefined && name !== undefined ? (
    <TablePage key={`${database}/${name}`} database={database} name={name} />
  ) : (
    <TableList />
  );
}
