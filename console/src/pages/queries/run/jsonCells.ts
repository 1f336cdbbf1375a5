import { parseExactly } from "./exactJson.ts";

/** Formats an object or array, or text that contains one, over several lines; undefined for other values. */
export function formatJson(value: unknown): string | undefined {
  const parsed = typeof value === "string" ? parseContainer(value) : value;
  return typeof parsed === "object" && parsed !== null ? JSON.stringify(parsed, null, 2) : undefined;
}

function parseContainer(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) {
    return undefined;
  }
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
