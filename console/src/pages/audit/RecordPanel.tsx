import { useState } from "preact/hooks";
import { Badge, Status } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Empty } from "@/components/Empty.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { useResource } from "@/components/useResource.ts";
import type { Verification } from "@/pages/scopes/BrokenChains.tsx";
import { hasWebCrypto } from "@/proof/bytes.ts";
import type { ChainName } from "@/proof/chains.ts";
import { formatRecordId } from "@/proof/record.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import { AmendLink } from "./AmendLink.tsx";
import css from "./Audit.module.css";
import { ALTERED, listAlterations, NEXT_REMOVED } from "./alteration.ts";
import { BrokenAdvice } from "./BrokenAdvice.tsx";
import { type AbsentRecord, type CheckedRecord, loadRecord } from "./checkedRecord.ts";
import { Facts } from "./Facts.tsx";
import { ProveDialog } from "./ProveDialog.tsx";
import type { QueryRecords } from "./paging.ts";
import { ReceiptButton } from "./ReceiptButton.tsx";
import { VerifyDialog } from "./VerifyDialog.tsx";

interface Props {
  chain: ChainName;
  sequence: number;
  ask: QueryRecords;
  onGo: (sequence: number) => void;
  onClose: () => void;
  /** Called after each complete verification of the chain. */
  onVerified: (found: Verification) => void;
}

/** One record: its content, its links in the chain, and its actions. */
export function RecordPanel({ chain, sequence, ask, onGo, onClose, onVerified }: Props) {
  const workspace = useIdentity().workspace ?? "";
  const found = useResource((signal) => loadRecord(ask, chain, workspace, sequence, signal), [ask, sequence]);
  const current = found.data?.sequence === sequence ? found : { ...found, data: undefined };
  return (
    <section class={css.panel} aria-label={`Record ${formatRecordId(sequence)}`}>
      <header class={css.panelHead}>
        <h2>
          Record <code>{formatRecordId(sequence)}</code>
        </h2>
        <div class={css.buttons}>
          <Button
            kind="quiet"
            icon="up"
            label="Newer record"
            disabled={!current.data || !hasNewer(current.data)}
            onClick={() => onGo(sequence + 1)}
          />
          <Button
            kind="quiet"
            icon="down"
            label="Older record"
            disabled={sequence <= 1}
            onClick={() => onGo(sequence - 1)}
          />
          <Button kind="quiet" icon="close" label="Close the record" onClick={onClose} />
        </div>
      </header>
      <Loaded resource={current} rows={8}>
        {(data) =>
          data.record === null ? (
            <NoRecord found={data} />
          ) : (
            <Content chain={chain} found={data} onGo={onGo} ask={ask} onVerified={onVerified} />
          )
        }
      </Loaded>
    </section>
  );
}

function hasNewer(found: CheckedRecord | AbsentRecord): boolean {
  return found.record === null ? found.isRemoved === true : found.next !== "none" && found.next !== "unknown";
}

function NoRecord({ found: { isRemoved } }: { found: AbsentRecord }) {
  if (isRemoved === null) {
    return (
      <Empty title="Record not found">
        The chain has no record with this number. The newest signed checkpoint, which shows whether it was removed,
        could not be read.
      </Empty>
    );
  }
  if (!isRemoved) {
    return <Empty title="Record not found">The chain has no record with this number.</Empty>;
  }
  return (
    <div class={css.panelBody}>
      <Notice kind="alarm" title="This record is missing.">
        Later records or a signed checkpoint show that it existed: it was removed, or its RecordID was altered.
        <NextSteps />
      </Notice>
    </div>
  );
}

type ContentProps = Pick<Props, "chain" | "ask" | "onGo" | "onVerified"> & { found: CheckedRecord };

function Content({ chain, found, ask, onGo, onVerified }: ContentProps) {
  const { record } = found;
  const [open, setOpen] = useState<"prove" | "verify">();
  const canVerify = useHasRights("Workspace.Provenance.Verify");
  const close = () => setOpen(undefined);
  return (
    <div class={css.panelBody}>
      <AlterationNotice found={found} />
      <div class={css.said}>
        <strong>{record.action}</strong>
        {!record.damaged && (
          <>
            <span>
              {record.entityType} <b>{record.entityId}</b>
            </span>
            <span class={css.soft}>
              <Time at={record.time} precise /> by {record.who || "an unknown person"}
            </span>
          </>
        )}
      </div>
      <div class={css.buttons}>
        {!record.damaged && hasWebCrypto() && (
          <Button kind="primary" icon="check" onClick={() => setOpen("prove")}>
            Prove this record
          </Button>
        )}
        {canVerify && (
          <Button icon="chain" onClick={() => setOpen("verify")}>
            Verify this record and its chain
          </Button>
        )}
        {!record.damaged && <ReceiptButton key={record.sequence} chain={chain} sequence={record.sequence} />}
        <AmendLink chain={chain} record={record} />
      </div>
      {record.damaged ? (
        <CodeBlock code={String(record.record.Content ?? "")} label="The stored content" />
      ) : (
        <Changes found={found} />
      )}
      <Facts record={record.record} />
      <Links found={found} onGo={onGo} />
      {open === "prove" && <ProveDialog chain={chain} record={record} onClose={close} />}
      {open === "verify" && (
        <VerifyDialog chain={chain} ask={ask} record={record.id} onVerified={onVerified} onClose={close} />
      )}
    </div>
  );
}

/** The warning above the values of an altered record, with the signs and the next steps. */
function AlterationNotice({ found }: { found: CheckedRecord }) {
  const signs = listAlterations(found);
  if (signs.length === 0) {
    return null;
  }
  const isNextMissingOnly = found.next === "missing" && listAlterations({ ...found, next: "none" }).length === 0;
  return (
    <Notice kind="alarm" title={isNextMissingOnly ? NEXT_REMOVED : ALTERED}>
      {signs.map((sign) => (
        <span key={sign}>{sign}</span>
      ))}
      <NextSteps />
    </Notice>
  );
}

function NextSteps() {
  return (
    <details>
      <summary>What to do now</summary>
      <BrokenAdvice titled={false} />
    </details>
  );
}

function Changes({ found: { record } }: { found: CheckedRecord }) {
  if (!record.before && !record.after) {
    return <p class={css.soft}>The record has no state before or after.</p>;
  }
  return (
    <JsonDiff
      before={record.before ?? undefined}
      after={record.after ?? undefined}
      all={!record.before || !record.after}
    />
  );
}

function Links({ found, onGo }: { found: CheckedRecord; onGo: (to: number) => void }) {
  const { record } = found;
  return (
    <dl class={css.facts}>
      <dt>Hash</dt>
      <dd>
        <code class={css.hash}>{record.hash}</code>
        <Check
          holds={found.digestHolds}
          yes="Matches the content (checked in this browser)"
          no="The content does not match its hash: altered or damaged."
        />
      </dd>
      <dt>Previous hash</dt>
      <dd>
        <code class={css.hash}>{record.previousHash || "none"}</code>
        <Check
          holds={found.linkHolds}
          yes={
            record.sequence === 1 ? "the chain's genesis hash" : `the Hash of ${formatRecordId(record.sequence - 1)}`
          }
          no={
            record.sequence === 1
              ? "not the chain's genesis hash"
              : `not the Hash of ${formatRecordId(record.sequence - 1)}`
          }
        />
        {record.sequence > 1 && (
          <button type="button" class={css.link} onClick={() => onGo(record.sequence - 1)}>
            Open {formatRecordId(record.sequence - 1)}
          </button>
        )}
      </dd>
      <dt>Next record</dt>
      <dd>
        <NextRecord found={found} onGo={onGo} />
      </dd>
    </dl>
  );
}

function NextRecord({ found: { sequence, next }, onGo }: { found: CheckedRecord; onGo: (to: number) => void }) {
  if (next === "none") {
    return <Badge>this is the newest</Badge>;
  }
  if (next === "unknown") {
    return <Status>none found, but not checked: the newest signed checkpoint could not be read</Status>;
  }
  if (next === "missing") {
    return <Status tone="bad">{formatRecordId(sequence + 1)} is missing</Status>;
  }
  return (
    <>
      <Check holds={next === "holds"} yes="links to this one" no="does not link to this one" />
      <button type="button" class={css.link} onClick={() => onGo(sequence + 1)}>
        Open {formatRecordId(sequence + 1)}
      </button>
    </>
  );
}

function Check({ holds, yes, no }: { holds: boolean | null; yes: string; no: string }) {
  if (holds === null) {
    return <Status>not checked: browsers compute hashes only on pages loaded over https or from this machine</Status>;
  }
  return <Status tone={holds ? "good" : "bad"}>{holds ? yes : no}</Status>;
}
