import { useEffect } from "preact/hooks";
import { type AuditScope, toChainName } from "@/api/auditScopes.ts";
import { isWithoutAuditLog } from "@/api/problem.ts";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import type { Resource } from "@/components/useResource.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { ALTERED, EMPTIED } from "@/pages/audit/alteration.ts";
import { buildAddress } from "@/pages/audit/place.ts";
import { type ChainName, formatChain } from "@/proof/chains.ts";
import { useBrokenChains } from "./useBrokenChains.ts";

/** The banner of every chain of the workspace that the last verification found broken. */
export function BrokenChains({ broken }: { broken: Resource<readonly AuditScope[]> }) {
  return (
    <>
      <UnknownState broken={broken} />
      <BrokenBanners chains={toBroken(broken.data)} />
    </>
  );
}

/** The outcome of a verification on this page. */
export interface Verification {
  broken: boolean;
  at: string;
}

interface ChainProps {
  chain: ChainName;
  /** The newest verification on this page; undefined before one. */
  newest?: Verification | undefined;
}

/** The banner of one chain, if its last verification found it broken. */
export function BrokenChain({ chain, newest }: ChainProps) {
  const { target, scopeKey } = chain;
  const broken = useBrokenChains({ target });
  useEffect(() => {
    if (newest) {
      broken.reload();
    }
  }, [newest]);
  const listed = toBroken(broken.data).filter((one) => one.chain.scopeKey === scopeKey);
  return (
    <>
      <UnknownState broken={broken} />
      <BrokenBanners
        chains={newest?.broken ? [{ chain, at: newest.at, isEmpty: listed[0]?.isEmpty ?? false }] : listed}
      />
    </>
  );
}

/** The error of a failed reading, so that a missing banner does not appear as an intact chain. */
function UnknownState({ broken: { error, reload } }: { broken: Resource<unknown> }) {
  if (error === undefined || isWithoutAuditLog(error)) {
    return null;
  }
  return (
    <ErrorNotice error={error} onRetry={reload}>
      The results of the last verifications could not be read, so broken chains are possibly not shown.
    </ErrorNotice>
  );
}

interface Broken {
  chain: ChainName;
  at: string | null;
  /** Whether it counts no records; the count may be altered, too. */
  isEmpty: boolean;
}

function toBroken(scopes: readonly AuditScope[] = []): Broken[] {
  return scopes.map((scope) => ({
    chain: toChainName(scope),
    at: scope.lastVerifiedAt,
    isEmpty: scope.records === 0,
  }));
}

function BrokenBanners({ chains }: { chains: readonly Broken[] }) {
  return (
    <>
      <BrokenBanner title={ALTERED} chains={chains.filter(({ isEmpty }) => !isEmpty)} />
      <BrokenBanner title={EMPTIED} chains={chains.filter(({ isEmpty }) => isEmpty)} />
    </>
  );
}

function BrokenBanner({ title, chains }: { title: string; chains: readonly Broken[] }) {
  if (chains.length === 0) {
    return null;
  }
  return (
    <Notice kind="alarm" title={title}>
      {chains.map(({ chain, at }) => (
        <span key={`${chain.target}/${chain.scopeKey}`}>
          <a href={buildAddress({ chain, filters: {}, at: undefined, record: undefined })}>
            <VisibleText text={formatChain(chain)} isName />
          </a>
          : found broken by the verification of <Time at={at} />
        </span>
      ))}
      <span>On the page of the chain, “Verify chain” shows the first altered, missing or duplicated record.</span>
    </Notice>
  );
}
