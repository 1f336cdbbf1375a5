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

/** Tells whether a time range is in the list. */
export function isPreset(timeRange: string): boolean {
  return PRESETS.some((preset) => preset.value === timeRange);
}
