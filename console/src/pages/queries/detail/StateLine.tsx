import type { WarmQuery } from "@/api/queries.ts";
import { Status } from "@/components/Badge.tsx";
import { Time } from "@/components/Time.tsx";
import { LongText } from "@/components/VisibleText.tsx";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { SignatureText } from "@/signing/SignatureText.tsx";
import { Evidence } from "./Evidence.tsx";
import css from "./Facts.module.css";

/** The state of a query: approval, last edit, surface and address. */
export function StateLine({ query }: { query: WarmQuery }) {
  const signature = query.approval?.signature ?? query.rejection?.signature;
  const proves = useHasRights("Workspace.Provenance.Read");
  return (
    <Panel>
      <dl class={css.facts}>
        <Fact term="State">
          <State query={query} />
        </Fact>
        {query.approval && (
          <Fact term="Approved by">
            {query.approval.approvedBy}, <Time at={query.approval.approvedAt} />
            {proves && <Evidence query={query} approval={query.approval} />}
          </Fact>
        )}
        {query.rejection && (
          <Fact term="Rejected by">
            {query.rejection.rejectedBy}, <Time at={query.rejection.rejectedAt} />
          </Fact>
        )}
        {signature && (
          <Fact term="Signature">
            <SignatureText signature={signature} />
          </Fact>
        )}
        {query.rejection && (
          <Fact term="Comment">
            <LongText text={query.rejection.comment} />
          </Fact>
        )}
        <Fact term="Last edit">
          {query.editedBy}, <Time at={query.updatedAt} />
        </Fact>
        <Fact term="Surface">{query.surface}</Fact>
        <Fact term="Address">
          <code>/oi-api/warm-queries/{query.apiPath ?? query.lookup}</code>
        </Fact>
        {query.cacheSeconds > 0 && <Fact term="Results">Cached for {query.cacheSeconds} s</Fact>}
      </dl>
    </Panel>
  );
}

function State({ query }: { query: WarmQuery }) {
  if (query.approval) {
    return <Status tone="good">Approved</Status>;
  }
  return query.rejection ? (
    <Status tone="bad">Rejected draft; after a change it waits for a decision again</Status>
  ) : (
    <Status tone="warn">Draft, until another person approves it</Status>
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
