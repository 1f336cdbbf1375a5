/** Common time ranges; others are entered as ISO 8601. */
export const PRESETS: readonly { value: string; label: string }[] = [
  { value: "", label: "All times" },
  { value: "PT15M", label: "Last 15 minutes" },
  { value: "PT1H", label: "Last hour" },
  { value: "PT6H", label: "Last 6 hours" },
  { value: "P1D", label: "Last day" },
  { value: "P7D", label: "Last 7 days" },
  { value: "P30D", label: "Last 30 days" },
  { value: "P365D", label: "Last 365 days" },
];

/** Returns the 24 hours up to the current minute, as instants. */
export function createLastDay(now: Date): { from: string; to: string } {
  const end = Math.floor(now.getTime() / MINUTE_MS) * MINUTE_MS;
  return { from: new Date(end - DAY_MS).toISOString(), to: new Date(end).toISOString() };
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Tells whether a time range is in the list. */
export function isPreset(timeRange: string): boolean {
  return PRESETS.some((preset) => preset.value === timeRange);
}
