// The chains of a workspace, and the address of one.

export type WorkspaceTarget = "PlatformConfig" | "AccessControl";
export type Target = WorkspaceTarget | "DomainEvents" | "DomainAmendments";

export const TARGETS: readonly Target[] = ["PlatformConfig", "AccessControl", "DomainEvents", "DomainAmendments"];

/** One chain: a container, and in the domain containers a scope of it. */
export interface ChainName {
  readonly target: Target;
  /** Empty for the workspace's own chains. */
  readonly scopeKey: string;
}

/** Maximum length of a scope. */
export const MAX_SCOPE = 1024;

/** Labels and descriptions of the containers. */
export const TARGET_TEXTS: Readonly<Record<Target, { label: string; holds: string }>> = {
  PlatformConfig: { label: "Configuration", holds: "Changes of the workspace's own configuration" },
  AccessControl: { label: "Access", holds: "Keys, tokens and the team's rights" },
  DomainEvents: { label: "Plant events", holds: "What happened in the plant, one chain for each scope" },
  DomainAmendments: {
    label: "Amendments",
    holds: "Amendments and the decisions about them, one chain for each scope",
  },
};

export function isTarget(text: string | undefined): text is Target {
  return TARGETS.some((target) => target === text);
}

/** Tells whether a container has one chain for each scope, rather than one for the workspace. */
export function isScoped(target: Target): boolean {
  return target === "DomainEvents" || target === "DomainAmendments";
}

/** Returns the query parameters that name a chain. */
export function toChainQuery(chain: ChainName): { target: Target; scopeKey?: string } {
  return isScoped(chain.target) ? { target: chain.target, scopeKey: chain.scopeKey } : { target: chain.target };
}

/** Returns a chain in words: `Plant events of line-1`. */
export function formatChain(chain: ChainName): string {
  const { label } = TARGET_TEXTS[chain.target];
  return isScoped(chain.target) ? `${label} of ${chain.scopeKey}` : label;
}
