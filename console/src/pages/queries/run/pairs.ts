import { EXTENT_NAMES } from "./queryCall.ts";

/** Returns the parameters in an address as lines `name=value`, without those that do not fit into a line. */
export function formatPairs(address: URLSearchParams): string {
  return [...address]
    .filter(isLine)
    .map(([name, value]) => `${name.slice(2)}=${value}`)
    .join("\n");
}

/** Returns the names in an address that are neither parts of the time range and limit nor in the lines. */
export function findIgnoredInputs(address: URLSearchParams): string[] {
  const known: readonly string[] = EXTENT_NAMES;
  const ignored = [...address].filter((input) => !known.includes(input[0]) && !isLine(input));
  return [...new Set(ignored.map(([name]) => name))];
}

/** Tells whether an input of an address is a parameter that one line can contain. */
function isLine([name, value]: [name: string, value: string]): boolean {
  return name.startsWith("p.") && !/[=\s]/.test(name) && !/[\r\n]/.test(value);
}

/** Parses lines `name=value` as query parameters; skips blank lines. A value may contain `=`, and its spaces count. */
export function parsePairs(text: string): [name: string, value: string][] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const cut = line.indexOf("=");
      const [name, value] = cut < 0 ? [line, ""] : [line.slice(0, cut), line.slice(cut + 1)];
      return [`p.${name.trim()}`, value];
    });
}
