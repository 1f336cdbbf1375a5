import { useMemo, useState } from "preact/hooks";
import type { Document, DocumentPage, Table } from "@/api/tables.ts";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Pager } from "@/components/Pager.tsx";
import { useResource } from "@/components/useResource.ts";
import { formatPlain, formatQuantity } from "@/format.ts";
import { buildHref } from "@/router/route.ts";
import { Panel } from "@/shell/Page.tsx";
import { fetchDocuments } from "./calls.ts";
import css from "./Data.module.css";
import { DocumentDialog } from "./DocumentDialog.tsx";
import { NewDocument } from "./NewDocument.tsx";
import { type PartitionQuery, readPartition } from "./partition.ts";

const KINDS = [
  { value: "string", label: "Text" },
  { value: "json", label: "JSON: 42, true, null" },
] as const;

const NOT_LISTED: DocumentPage = { documents: [], count: 0, continuationToken: null };

interface Filter {
  text: string;
  kind: "string" | "json";
}

/** The documents of a table, in pages. */
export function Documents({ table }: { table: Table }) {
  const [typed, setTyped] = useState<Filter>({ text: "", kind: "string" });
  const [filter, setFilter] = useState(typed);
  // Continuation tokens of the pages up to the current one; the first page has none.
  const [tokens, setTokens] = useState<readonly (string | null)[]>([null]);
  const [open, setOpen] = useState<Document>();
  const [making, setMaking] = useState(false);
  const lists = table.verbs.has("list");
  const token = tokens.at(-1) ?? null;
  const page = useResource(
    async (signal) => {
      const found = lists ? await fetchDocuments(table, toPartitionQuery(filter), token, signal) : NOT_LISTED;
      return { ...found, filter, number: tokens.length };
    },
    [lists, filter, token],
  );
  // Documents of another partition key must not remain, because they would appear to match.
  const shown = page.data?.filter === filter ? page : { ...page, data: undefined };
  const columns = useMemo(() => buildColumns(table), [table]);
  const apply = (event: Event) => {
    event.preventDefault();
    setTokens([null]);
    setFilter(typed);
  };
  // Until the next page arrives, `data` still has its token; a second click must not add it again.
  const toNext = (next: string | null) => setTokens((before) => (before.at(-1) === next ? before : [...before, next]));
  const done = () => {
    setOpen(undefined);
    setMaking(false);
    page.reload();
  };
  return (
    <Panel
      title={`Documents of ${table.name}`}
      actions={
        table.verbs.has("create") && (
          <Button icon="plus" onClick={() => setMaking(true)}>
            New document
          </Button>
        )
      }
    >
      <p class={css.note}>
        <a href={buildHref("data", [table.database])}>{table.database}</a> in {table.store}, partitioned on{" "}
        <code>{table.partitionKeyPath}</code>; published: {[...table.verbs].join(", ")}
      </p>
      {lists ? (
        <>
          <form class={css.filter} onSubmit={apply}>
            <Field
              label={`Partition key ${table.partitionKeyPath}`}
              hideLabel
              placeholder={`Partition key ${table.partitionKeyPath}: all`}
              value={typed.text}
              mono
              onInput={(text) => setTyped({ ...typed, text })}
            />
            <Select
              label="Type of the key"
              hideLabel
              value={typed.kind}
              options={KINDS}
              onChange={(kind) => setTyped({ ...typed, kind })}
            />
            <Button type="submit" icon="search">
              Show
            </Button>
          </form>
          <Loaded resource={shown} rows={8}>
            {({ documents, count, continuationToken, number }) => (
              <>
                <DataTable
                  label={`Documents of ${table.name}`}
                  columns={columns}
                  rows={documents}
                  rowKey={(row) => `${formatPlain(row.id)} ${formatPlain(readPartition(row, table.partitionKeyPath))}`}
                  onOpen={setOpen}
                  empty={
                    <Empty title="No documents">
                      {table.verbs.has("create") ? "Create one with New document" : "The table is empty"}
                      {filter.text === "" ? "." : ", or look under another partition key."}
                    </Empty>
                  }
                />
                <Pager
                  text={`Page ${number}, ${formatQuantity(count, "document")}`}
                  onPrevious={tokens.length > 1 ? () => setTokens(tokens.slice(0, -1)) : undefined}
                  onNext={continuationToken ? () => toNext(continuationToken) : undefined}
                />
              </>
            )}
          </Loaded>
        </>
      ) : (
        <Empty title="The documents of this table cannot be listed">
          You can create documents here. Programs read them by ID.
        </Empty>
      )}
      {open && (
        <DocumentDialog
          table={table}
          listed={open}
          onOutdated={page.reload}
          onClose={() => setOpen(undefined)}
          onDone={done}
        />
      )}
      {making && <NewDocument table={table} onClose={() => setMaking(false)} onDone={done} />}
    </Panel>
  );
}

function toPartitionQuery({ text, kind }: Filter): PartitionQuery {
  return text === "" ? {} : { partitionKey: text, ...(kind === "json" ? { partitionKeyType: kind } : {}) };
}

function buildColumns({ partitionKeyPath }: Table): readonly Column<Document>[] {
  const key: Column<Document> = {
    key: "partition",
    title: partitionKeyPath,
    width: 160,
    value: (row) => readPartition(row, partitionKeyPath),
  };
  return [
    { key: "id", title: "id", type: "code", width: 220, value: (row) => row.id },
    ...(partitionKeyPath === "/id" ? [] : [key]),
    { key: "rest", title: "Document", type: "json", sortable: false, value: ({ id: _, ...rest }) => rest },
  ];
}
