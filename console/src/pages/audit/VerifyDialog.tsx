import { useEffect, useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { ApiError } from "@/api/problem.ts";
import { fetchNewestCheckpoint, type Verdict, verifyChain } from "@/api/provenance.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import type { Verification } from "@/pages/scopes/BrokenChains.tsx";
import { type ChainName, formatChain } from "@/proof/chains.ts";
import css from "./Audit.module.css";
import { BrokenAdvice } from "./BrokenAdvice.tsx";
import { ChainPicture } from "./ChainPicture.tsx";
import { fetchTip, type QueryRecords } from "./paging.ts";
import { buildPicture, type ChainEnd } from "./picture.ts";
import { verifyToEnd } from "./verification.ts";

interface Props {
  chain: ChainName;
  ask: QueryRecords;
  /** RecordID of a record to check in particular. */
  record?: string;
  /** Called after each complete verification. */
  onVerified: (found: Verification) => void;
  onClose: () => void;
}

interface Verified {
  verdict: Verdict;
  end: ChainEnd;
  seconds: number;
}

/** A dialog in which the service verifies a chain, with the verdict and a picture. */
export function VerifyDialog({ chain, ask, record, onVerified, onClose }: Props) {
  const found = useResource((signal) => verify(chain, ask, record, signal), []);
  const verdict = found.data?.verdict;
  useEffect(() => {
    if (verdict) {
      onVerified({ broken: !verdict.ChainValid, at: new Date().toISOString() });
    }
  }, [verdict]);
  return (
    <Dialog
      title={`Verification of ${formatChain(chain)}`}
      wide
      onClose={onClose}
      actions={
        <>
          <Button icon="refresh" busy={found.loading} onClick={found.reload}>
            Verify again
          </Button>
          <Button kind="primary" onClick={onClose}>
            {found.loading ? "Stop" : "Close"}
          </Button>
        </>
      }
    >
      {found.loading && <VerificationProgress />}
      {!found.loading && found.error !== undefined && <ErrorNotice error={found.error} onRetry={found.reload} />}
      {!found.loading && found.error === undefined && found.data && (
        <Outcome chain={chain} found={found.data} record={record} onClose={onClose} />
      )}
    </Dialog>
  );
}

async function verify(
  chain: ChainName,
  ask: QueryRecords,
  record: string | undefined,
  signal: AbortSignal,
): Promise<Verified> {
  let seconds = 0;
  const verify = async () => {
    const begun = performance.now();
    const verdict = await verifyChain(api, chain, signal, record);
    seconds = (performance.now() - begun) / 1000;
    return verdict;
  };
  const found = await verifyToEnd({
    verify,
    tip: () => fetchTip(ask, signal),
    checkpoint: () => fetchCheckpointSize(chain, signal),
  });
  return { ...found, seconds };
}

/** Returns the size of the newest checkpoint; null if there is none or the service rejects it. */
async function fetchCheckpointSize(chain: ChainName, signal: AbortSignal): Promise<number | null> {
  try {
    return (await fetchNewestCheckpoint(api, chain, signal))?.size ?? null;
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

function VerificationProgress() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class={css.walking}>
      <progress aria-label="Verifying the chain" />
      <p>
        The service reads every record, recomputes every hash and checks every link. A long chain takes minutes; the
        service stops after 200 s. {seconds > 2 && `${seconds} s so far.`}
      </p>
    </div>
  );
}

interface OutcomeProps {
  chain: ChainName;
  found: Verified;
  record: string | undefined;
  onClose: () => void;
}

function Outcome({ chain, found: { verdict, end, seconds }, record, onClose }: OutcomeProps) {
  return (
    <>
      <Notice kind={chooseKind(verdict)} title={chooseTitle(verdict)}>
        <span>{toSentence(verdict.Reason ?? "")}</span>
        {verdict.BrokenAt && (
          <span>
            Broken at <code>{verdict.BrokenAt}</code>
          </span>
        )}
        {verdict.Empty && <span>If you expected records, check the spelling of the scope.</span>}
      </Notice>
      {record !== undefined && verdict.Valid !== null && (
        <Notice kind={verdict.Valid ? "good" : "bad"} title={`Record ${record}`}>
          {verdict.Valid ? "The content matches its hash." : "The content does not match its hash: altered or damaged."}
          {verdict.RecomputedHash && <code class={css.hash}>{verdict.RecomputedHash}</code>}
        </Notice>
      )}
      {!verdict.Empty && <ChainPicture chain={chain} picture={buildPicture(verdict, end)} onGo={onClose} />}
      {!verdict.ChainValid && <BrokenAdvice />}
      <p class={css.soft}>
        The service took {seconds < 1 ? `${Math.ceil(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`}. For an
        independent verdict, export the chain and use the offline verifier.
      </p>
    </>
  );
}

function chooseKind(verdict: Verdict): "good" | "bad" | "warn" {
  if (!verdict.ChainValid) return "bad";
  return verdict.Empty ? "warn" : "good";
}

function chooseTitle(verdict: Verdict): string {
  if (verdict.ForkDetected) return "The chain is forked";
  if (!verdict.ChainValid) return "The chain is broken";
  return verdict.Empty ? "The chain has no records" : "The chain is intact";
}

function toSentence(reason: string): string {
  return reason === "" ? "" : `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}
