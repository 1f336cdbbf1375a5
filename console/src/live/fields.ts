const DEEPEST = 32;

/**
 * Calls back with each finite number of a payload and its name; names of nested properties are joined with dots, as in downloads. Arrays are skipped, because indexes are not names.
 */
export function forEachNumber(payload: unknown, found: (name: string, value: number) => void): void {
  visit(payload, "", 0, found);
}

function visit(value: unknown, prefix: string, depth: number, found: (name: string, value: number) => void): void {
  if (typeof value !== "object" || value === null || Array.isArray(value) || depth > DEEPEST) {
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    if (typeof member === "number") {
      if (Number.isFinite(member)) {
        found(prefix + key, member);
      }
    } else {
      visit(member, `${prefix}${key}.`, depth + 1, found);
    }
  }
}
