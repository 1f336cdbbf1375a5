import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError, api } from "@/api/index.ts";
import type { StoredItem } from "@/api/items.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { Page } from "@/shell/Page.tsx";

/** Actions on the shown item. */
export interface ShownItem<Item> {
  item: Item;
  /** Whether another person removed the item. */
  isRemoved: boolean;
  /** Shows a version that the service returned; null for an item that another person removed. */
  replace: (item: Item | null) => void;
  /** Reads the item again. */
  reload: () => void;
}

interface Props<Item> {
  /** Address of the item in the API. */
  path: string;
  /** Its key: a lookup or an ID. */
  name: string;
  /** Address and title of the page that lists such items. */
  list: { page: string; title: string };
  toTitle: (item: Item) => string;
  /** Parses the reply; without it, whole numbers beyond 2^53 are rounded. */
  parse?: (text: string) => unknown;
  actions?: (shown: ShownItem<Item>) => ComponentChildren;
  children: (shown: ShownItem<Item>) => ComponentChildren;
}

/** The page of one item, with a link back to the list. */
export function ItemPage<Item extends StoredItem>(props: Props<Item>) {
  const { path, name, list, toTitle, parse, actions, children } = props;
  const resource = useResource((signal) => api.get<Item>(path, { signal, parse }), [path]);
  const [newer, setNewer] = useState<Item>();
  const [isRemoved, setIsRemoved] = useState(false);
  const item = newer ?? resource.data;
  const replace = (version: Item | null) => {
    setNewer((before) => version ?? before);
    setIsRemoved(version === null);
  };
  const reload = () => {
    setNewer(undefined);
    resource.reload();
  };
  const shown = item && { item, isRemoved, replace, reload };
  const isMissing = resource.error instanceof ApiError && resource.error.status === 404;
  return (
    <Page
      title={item ? toTitle(item) : name}
      description={name}
      actions={
        <>
          <Button onClick={() => navigate(buildHref(list.page))}>{list.title}</Button>
          {shown && !isMissing && !isRemoved && actions?.(shown)}
        </>
      }
    >
      {isMissing ? (
        <Empty title={`“${name}” does not exist`}>
          If it was removed, the audit log names the person who removed it.
        </Empty>
      ) : (
        <Loaded resource={{ ...resource, data: shown }} rows={8}>
          {children}
        </Loaded>
      )}
    </Page>
  );
}
