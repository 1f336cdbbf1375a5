/** Returns the parameters in an address as lines `name=value`. */
export function formatPairs(address: URLSearchParams): string {
  const named = [...address].filter(([name]) => name.startsWith("p."));
  return named.map(([name, value]) => `${name.slice(2)}=${value}`).join("\n");
}

/** Parses lines `name=value` as query parameters; skips blank lines, and a value may contain `=`. */
export function parsePairs(text: string): [name: string, value: string][] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const cut = line.indexOf("=");
      const [name, value] = cut < 0 ? [line, ""] : [line.slice(0, cut), line.slice(cut + 1)];
      return [`p.${name.trim()}`, value.trim()];
    });
}
