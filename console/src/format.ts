const UNITS = ["B", "kB", "MB", "GB", "TB"];
const WHOLE = new Intl.NumberFormat("en");

/** 2026-11-21 14:03:09 in the reader's time zone, or the text itself where it is no instant. */
export function localTime(at: string, precise = false): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) {
    return at;
  }
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return precise ? `${day} ${clock}.${String(time.getMilliseconds()).padStart(3, "0")}` : `${day} ${clock}`;
}

/** 12,345 */
export function count(value: number): string {
  return WHOLE.format(value);
}

/** 7.3 MB */
export function bytes(value: number): string {
  let unit = 0;
  let left = value;
  while (left >= 1000 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? left : left.toFixed(1)} ${UNITS[unit]}`;
}

/** A value of a query's answer as one line of text. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) {
    return "";
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
