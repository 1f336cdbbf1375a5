type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

/**
 * Reads JSON and keeps whole numbers that JavaScript would round, beyond 2^53, as the text that stood there; Kusto's
 * `long` has 64 bits. A browser that does not tell the text rounds them.
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
