import type { ComponentChildren } from "preact";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import type { Resource } from "@/components/useResource.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { Page, Panel } from "@/shell/Page.tsx";

interface Props<Item> {
  /** Segment of the page's address. */
  page: string;
  title: string;
  description: string;
  /** Label of the button for a new item; undefined without the right. */
  addLabel: string | undefined;
  resource: Resource<readonly Item[]>;
  columns: readonly Column<Item>[];
  toKey: (item: Item) => string;
  /** Title and text without items. */
  empty: { title: string; text: string };
  /** Content above the table. */
  above?: (items: readonly Item[]) => ComponentChildren;
  /** Further panels. */
  children?: ComponentChildren;
}

/** The page that lists items of one kind; each row opens its item. */
export function ListedItems<Item>(props: Props<Item>) {
  const { page, title, description, addLabel, resource, columns, toKey, empty, above, children } = props;
  const add = addLabel && (
    <Button kind="primary" icon="plus" onClick={() => navigate(buildHref(page, [], { view: "new" }))}>
      {addLabel}
    </Button>
  );
  return (
    <Page title={title} description={description} actions={add}>
      <Loaded resource={resource} rows={6}>
        {(items) => (
          <>
            {above?.(items)}
            <Panel>
              <DataTable
                label={title}
                columns={columns}
                rows={items}
                rowKey={toKey}
                onOpen={(item) => navigate(buildHref(page, [toKey(item)]))}
                empty={<Empty title={empty.title}>{empty.text}</Empty>}
              />
            </Panel>
          </>
        )}
      </Loaded>
      {children}
    </Page>
  );
}

/** Columns with the latest change of an item. */
export function changeColumns<Item extends { editedBy: string | null; updatedAt: string | null }>(): Column<Item>[] {
  return [
    { key: "by", title: "Changed by", width: 150, value: ({ editedBy }) => editedBy },
    { key: "at", title: "Changed", type: "time", width: 164, value: ({ updatedAt }) => updatedAt },
  ];
}
