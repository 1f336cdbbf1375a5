import { quoteForShell } from "@/components/literals.ts";
import type { Subject } from "./text.ts";

/** Returns the call for curl in a POSIX shell, with the token from the environment. */
export function buildCurl({ ask, origin }: Subject): string {
  const lines = [`curl --fail-with-body -sS ${quoteForShell(origin + ask.path)}`, '-H "Authorization: Bearer $TOKEN"'];
  if (ask.body) {
    lines.push("-H 'Content-Type: application/json'", `--data-raw ${quoteForShell(JSON.stringify(ask.body))}`);
  } else if (ask.query.length > 0) {
    lines[0] = `${lines[0]} -G`;
    lines.push(...ask.query.map(([name, value]) => `--data-urlencode ${quoteForShell(`${name}=${value}`)}`));
  }
  return `${lines.join(" \\\n  ")}\n`;
}
