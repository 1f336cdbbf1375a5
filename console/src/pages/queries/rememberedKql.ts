import { recall, remember } from "@/session/tabMemory.ts";

const NAME = "kql";

/** Returns the text of the ad-hoc editor, which survives a visit of other pages; undefined at first. */
export function recallKql(): string | undefined {
  const found = recall(NAME);
  return typeof found === "string" ? found : undefined;
}

export function rememberKql(text: string): void {
  remember(NAME, text);
}
