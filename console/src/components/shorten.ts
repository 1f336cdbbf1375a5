const MOST_CHARACTERS = 600;
const MOST_LINES = 14;

/** Shortens a long text for tables; returns a short one unchanged. */
export function shorten(text: string): string {
  const lines = text.split("\n");
  const short = lines.length > MOST_LINES ? lines.slice(0, MOST_LINES).join("\n") : text;
  if (short.length <= MOST_CHARACTERS) {
    return short;
  }
  const half = /[\uD800-\uDBFF]/.test(short.charAt(MOST_CHARACTERS - 1));
  return short.slice(0, half ? MOST_CHARACTERS - 1 : MOST_CHARACTERS);
}
