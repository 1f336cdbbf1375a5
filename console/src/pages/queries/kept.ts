/** What was typed lives as long as the tab, so that a look at another page does not lose it. */
export const kept: {
  /** Text of the ad-hoc editor. */
  kql: string | undefined;
} = { kql: undefined };
