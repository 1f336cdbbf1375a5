import type { WarmQuery } from "@/api/queries.ts";
import { Status } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { formatCount } from "@/format.ts";
import { buildHref, navigate, type Route } from "@/router/route.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { type Filter, fetchWarmQueries, filterQueries, type StateFilter } from "./catalogQueries.ts";
import { ListActions } from "./ListActions.tsx";
import css from "./QueryList.module.css";

const STATES: readonly { value: StateFilter; label: string }[] = [
  { value: "", label: "Any state" },
  { value: "approved", label: "Approved" },
  { value: "draft", label: "Draft" },
];

/** Every query of the workspace. */
export function QueryList({ route }: { route: Route }) {
  const resource = useResource(fetchWarmQueries, []);
  const filter: Filter = {
    text: route.query.get("text") ?? "",
    state: (route.query.get("state") ?? "") as StateFilter,
    surface: route.query.get("surface") ?? "",
  };
  return (
    <Page title="Queries" description="Approved KQL queries, and drafts." actions={<ListActions />}>
      <Panel>
        <Loaded resource={resource} rows={10}>
          {(queries) => <Filtered queries={queries} filter={filter} />}
        </Loaded>
      </Panel>
    </Page>
  );
}

function Filtered({ queries, filter }: { queries: readonly WarmQuery[]; filter: Filter }) {
  const surfaces = [...new Set(queries.map((query) => query.surface))].sort();
  const change = (some: Partial<Filter>) => navigate(buildHref("queries", [], { ...filter, ...some }), "replace");
  if (queries.length === 0) {
    return (
      <Empty title="No queries">Write the first one with “New query”, or declare it in the workspace document.</Empty>
    );
  }
  return (
    <>
      <div class={css.filters}>
        <Field
          label="Search"
          hideLabel
          type="search"
          placeholder="Search names, paths and KQL"
          value={filter.text}
          onInput={(text) => change({ text })}
        />
        <Select label="State" hideLabel value={filter.state} options={STATES} onChange={(state) => change({ state })} />
        <Select
          label="Surface"
          hideLabel
          value={filter.surface}
          options={[{ value: "", label: "Any surface" }, ...surfaces.map((each) => ({ value: each, label: each }))]}
          onChange={(surface) => change({ surface })}
        />
      </div>
      <DataTable
        label="Queries"
        columns={COLUMNS}
        rows={filterQueries(queries, filter)}
        rowKey={(query) => query.lookup}
        onOpen={(query) => navigate(buildHref("queries", [query.lookup]))}
        empty={
          <Empty
            title="No matching queries"
            action={<Button onClick={() => change({ text: "", state: "", surface: "" })}>Show all queries</Button>}
          >
            Change the filters, or show all {formatCount(queries.length)} queries.
          </Empty>
        }
      />
    </>
  );
}

const TONES = { Approved: "good", Rejected: "bad", Draft: "warn" } as const;

function describeState(query: WarmQuery): keyof typeof TONES {
  if (query.approval) {
    return "Approved";
  }
  return query.rejection ? "Rejected" : "Draft";
}

const COLUMNS: readonly Column<WarmQuery>[] = [
  {
    key: "name",
    title: "Name",
    value: (query) => query.name,
    render: (query) => <span class={css.name}>{query.name}</span>,
    width: 240,
  },
  { key: "lookup", title: "ID", type: "code", value: (query) => query.lookup, width: 192 },
  { key: "surface", title: "Surface", value: (query) => query.surface, width: 128 },
  {
    key: "state",
    title: "State",
    value: describeState,
    render: (query) => <Status tone={TONES[describeState(query)]}>{describeState(query)}</Status>,
    width: 112,
  },
  { key: "approvedBy", title: "Approved by", value: (query) => query.approval?.approvedBy ?? null, width: 216 },
  {
    key: "approvedAt",
    title: "Approved",
    type: "time",
    value: (query) => query.approval?.approvedAt ?? null,
    width: 176,
  },
];
