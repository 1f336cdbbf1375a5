import { recall, remember } from "@/session/tabMemory.ts";

const NAME = "kql";

/** Gives the text of the ad-hoc editor, so that a look at another page does not lose it; undefined before the first. */
export function recallKql(): string | undefined {
  const found = recall(NAME);
  return typeof found === "string" ? found : undefined;
}

export function rememberKql(text: string): void {
  remember(NAME, text);
}
