import type { ComponentChildren } from "preact";
import { Loading } from "./Loading.tsx";
import { ErrorNotice } from "./Notice.tsx";
import type { Resource } from "./useResource.ts";

interface Props<T> {
  resource: Resource<T>;
  children: (data: T) => ComponentChildren;
  /** Rows of the outline that stands until there are data. */
  rows?: number;
}

/** Shows a resource: its outline, then its data; an error with a way to try again, above data that were there. */
export function Loaded<T>({ resource, children, rows = 5 }: Props<T>) {
  const { data, error, loading, reload } = resource;
  return (
    <>
      {error !== undefined && <ErrorNotice error={error} onRetry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && loading && error === undefined && <Loading rows={rows} />}
    </>
  );
}
