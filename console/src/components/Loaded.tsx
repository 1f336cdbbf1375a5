import type { ComponentChildren } from "preact";
import { Loading } from "./Loading.tsx";
import { ErrorNotice } from "./Notice.tsx";
import type { Resource } from "./useResource.ts";

interface Props<T> {
  resource: Resource<T>;
  children: (data: T) => ComponentChildren;
  /** Rows of the loading placeholder. */
  rows?: number;
  /** Placeholder of the size of the content, so that its arrival moves nothing; the default is rows. */
  placeholder?: ComponentChildren;
}

/** Shows a resource: a placeholder, then its data; an error has a retry button, above any earlier data. */
export function Loaded<T>({ resource, children, rows = 5, placeholder }: Props<T>) {
  const { data, error, loading, reload } = resource;
  return (
    <>
      {error !== undefined && <ErrorNotice error={error} onRetry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && loading && error === undefined && (placeholder ?? <Loading rows={rows} />)}
    </>
  );
}
