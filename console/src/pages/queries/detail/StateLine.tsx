import type { WarmQuery } from "@/api/queries.ts";
import { Status } from "@/components/Badge.tsx";
import { Time } from "@/components/Time.tsx";
import { Panel } from "@/shell/Page.tsx";
import css from "./Facts.module.css";

/** The state of a query: approval, last edit, surface and address. */
export function StateLine({ query }: { query: WarmQuery }) {
  return (
    <Panel>
      <dl class={css.facts}>
        <Fact term="State">
          {query.approval ? (
            <Status tone="good">Approved</Status>
          ) : (
            <Status tone="warn">Draft, until another person approves it</Status>
          )}
        </Fact>
        {query.approval && (
          <Fact term="Approved by">
            {query.approval.approvedBy}, <Time at={query.approval.approvedAt} />
          </Fact>
        )}
        <Fact term="Last edit">
          {query.editedBy}, <Time at={query.updatedAt} />
        </Fact>
        <Fact term="Surface">{query.surface}</Fact>
        <Fact term="Address">
          <code>/oi-api/warm-queries/{query.apiPath ?? query.lookup}</code>
        </Fact>
        {query.cacheSeconds > 0 && <Fact term="Results are cached for">{query.cacheSeconds} s</Fact>}
      </dl>
    </Panel>
  );
}

function Fact({ term, children }: { term: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}
