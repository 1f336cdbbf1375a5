import { type AuditScope, fetchAllAuditScopes, isBroken, toChainName } from "@/api/auditScopes.ts";
import { api } from "@/api/index.ts";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { useResource } from "@/components/useResource.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { ALTERED } from "@/pages/audit/alteration.ts";
import { buildAddress } from "@/pages/audit/place.ts";
import { type ChainName, formatChain } from "@/proof/chains.ts";

/** The banner of every chain of the workspace that the last verification found broken. */
export function BrokenChains() {
  const { data } = useResource((signal) => fetchAllAuditScopes(api, undefined, signal), []);
  return <BrokenBanner chains={listBroken(data)} />;
}

/** The outcome of a verification on this page. */
export interface Verification {
  broken: boolean;
  at: string;
}

interface ChainProps {
  chain: ChainName;
  /** The newest verification on this page; undefined before one. */
  newest: Verification | undefined;
}

/** The banner of one chain, if its last verification found it broken. */
export function BrokenChain({ chain, newest }: ChainProps) {
  const { target, scopeKey } = chain;
  const { data } = useResource((signal) => fetchAllAuditScopes(api, target, signal), [target, scopeKey]);
  if (newest) {
    return <BrokenBanner chains={newest.broken ? [{ chain, at: newest.at }] : []} />;
  }
  return <BrokenBanner chains={listBroken(data).filter((broken) => broken.chain.scopeKey === scopeKey)} />;
}

interface Broken {
  chain: ChainName;
  at: string | null;
}

function listBroken(scopes: readonly AuditScope[] = []): Broken[] {
  return scopes.filter(isBroken).map((scope) => ({ chain: toChainName(scope), at: scope.lastVerifiedAt }));
}

function BrokenBanner({ chains }: { chains: readonly Broken[] }) {
  if (chains.length === 0) {
    return null;
  }
  return (
    <Notice kind="alarm" title={ALTERED}>
      {chains.map(({ chain, at }) => (
        <span key={`${chain.target}/${chain.scopeKey}`}>
          <a href={buildAddress({ chain, filters: {}, at: undefined, record: undefined })}>
            <VisibleText text={formatChain(chain)} />
          </a>
          : found broken by the verification of <Time at={at} />
        </span>
      ))}
      <span>On the page of the chain, “Verify chain” shows the first altered, missing or duplicated record.</span>
    </Notice>
  );
}
