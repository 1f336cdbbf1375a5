type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

/**
 * Parses JSON and returns whole numbers beyond 2^53, such as Kusto's 64-bit `long`, as text, because JavaScript would round them. Old browsers still round.
 */
export function parseExactly<T>(text: string): T {
  return /\d{16}/.test(text)
    ? (JSON.parse(text, unrounded as Parameters<typeof JSON.parse>[1]) as T)
    : JSON.parse(text);
}

const unrounded: Reviver = (_, value, context) => {
  const rounded = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  const source = context?.source;
  return rounded && source !== undefined && /^-?\d+$/.test(source) ? source : value;
};
