/** A scope in a list of suggestions. */
export interface OfferedScope {
  scope: string;
  /** Number of its records; undefined if it is unknown. */
  records: number | undefined;
}

/** Merges the recent scopes with the listed ones: recent scopes first, each scope once. */
export function mergeScopes(recent: readonly string[], listed: readonly OfferedScope[]): OfferedScope[] {
  const known = new Map(listed.map((each) => [each.scope, each]));
  const first = recent.map((scope) => known.get(scope) ?? { scope, records: undefined });
  const names = new Set(recent);
  return [...first, ...[...known.values()].filter(({ scope }) => scope !== "" && !names.has(scope))];
}
