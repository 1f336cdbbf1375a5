import { type AuditScope, fetchAuditScopes, toChainName } from "@/api/auditScopes.ts";
import { api } from "@/api/index.ts";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Select } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Pager } from "@/components/Pager.tsx";
import { useCursors } from "@/components/useCursors.ts";
import { useResource } from "@/components/useResource.ts";
import { formatCount } from "@/format.ts";
import { buildAddress } from "@/pages/audit/place.ts";
import { isTarget, TARGET_TEXTS, TARGETS, type Target } from "@/proof/chains.ts";
import { buildHref, navigate, type Route } from "@/router/route.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Scopes.module.css";
import { Verdict } from "./Verdict.tsx";

const PAGE = 100;

const TARGET_OPTIONS: readonly { value: Target | ""; label: string }[] = [
  { value: "", label: "Any container" },
  ...TARGETS.map((target) => ({ value: target, label: TARGET_TEXTS[target].label })),
];

const COLUMNS: readonly Column<AuditScope>[] = [
  { key: "target", title: "Container", value: (row) => TARGET_TEXTS[row.target].label, width: 120, sortable: false },
  {
    key: "scope",
    title: "Scope",
    type: "name",
    value: (row) => row.scopeKey ?? "(whole workspace)",
    sortable: false,
  },
  {
    key: "verdict",
    title: "Verdict",
    value: (row) => row.lastVerdict,
    render: (row) => <Verdict verdict={row.lastVerdict} />,
    width: 148,
    sortable: false,
  },
  { key: "verified", title: "Verified", type: "time", value: (row) => row.lastVerifiedAt, width: 168, sortable: false },
  { key: "records", title: "Records", type: "number", value: (row) => row.records, width: 88, sortable: false },
  {
    key: "pending",
    title: "Pending",
    type: "number",
    value: (row) => (row.target === "DomainAmendments" ? row.pendingAmendments : null),
    width: 80,
    sortable: false,
  },
  { key: "first", title: "First record", type: "time", value: (row) => row.firstAt, width: 168, sortable: false },
  { key: "last", title: "Last record", type: "time", value: (row) => row.lastAt, width: 168, sortable: false },
];

/** The list of chains, filtered by container. */
export function ScopeList({ route }: { route: Route }) {
  const text = route.query.get("target") ?? "";
  const target = isTarget(text) ? text : "";
  return (
    <Panel>
      <div class={css.filters}>
        <Select
          label="Container"
          value={target}
          options={TARGET_OPTIONS}
          onChange={(chosen) => navigate(buildHref("scopes", [], { target: chosen }), "replace")}
        />
      </div>
      <Pages key={target} target={target} />
    </Panel>
  );
}

function Pages({ target }: { target: Target | "" }) {
  const { cursor, page: requested, toNext, toPrevious } = useCursors();
  const choice = { target: target || undefined, limit: PAGE, cursor };
  const resource = useResource(
    async (signal) => ({ ...(await fetchAuditScopes(api, choice, signal)), page: requested }),
    [cursor],
  );
  return (
    <Loaded resource={resource} rows={8}>
      {({ scopes, cursor: next, page }) => (
        <>
          <DataTable
            label="Chains of the audit log"
            columns={COLUMNS}
            rows={scopes}
            rowKey={(row) => `${row.target}/${row.scopeKey}`}
            onOpen={(row) =>
              navigate(buildAddress({ chain: toChainName(row), filters: {}, at: undefined, record: undefined }))
            }
            empty={
              <Empty title="No chains">
                A chain exists from its first record on. Choose another container, or write an event.
              </Empty>
            }
          />
          {(scopes.length > 0 || page > 1) && (
            <Pager
              text={describePage(page, scopes.length, next !== null)}
              onPrevious={toPrevious}
              onNext={toNext(next)}
            />
          )}
        </>
      )}
    </Loaded>
  );
}

function describePage(page: number, rows: number, hasMore: boolean): string {
  const first = (page - 1) * PAGE;
  const range = `${formatCount(first + 1)}–${formatCount(first + rows)}`;
  return hasMore ? `${range}, and more` : `${range} of ${formatCount(first + rows)}`;
}
