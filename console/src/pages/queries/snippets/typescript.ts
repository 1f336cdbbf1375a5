import { toLiteral } from "@/components/literals.ts";
import type { Subject } from "./text.ts";

const TYPES: Record<string, string> = {
  bool: "boolean",
  int: "number",
  long: "number",
  real: "number",
  dynamic: "unknown",
};

/** Returns the call for TypeScript on Node.js 18 or later, Deno or Bun, with the token from the environment. */
export function buildTypescript({ ask, origin, columns }: Subject): string {
  const members = columns
    .map(({ name, type }) => `  ${toLiteral(name)}: ${TYPES[type] ?? "string"} | null;\n`)
    .join("");
  const row = columns.length === 0 ? "type Row = Record<string, unknown>;\n" : `interface Row {\n${members}}\n`;
  const pairs = ask.query.map(([name, value]) => `  [${toLiteral(name)}, ${toLiteral(value)}],\n`).join("");
  const query = ask.query.length === 0 ? "" : `url.search = new URLSearchParams([\n${pairs}]).toString();\n`;
  const headers = 'Authorization: "Bearer " + process.env.TOKEN';
  const init = ask.body
    ? `{
  method: "POST",
  headers: { ${headers}, "Content-Type": "application/json" },
  body: JSON.stringify(${formatBody(ask.body)}),
}`
    : `{ headers: { ${headers} } }`;
  return `${row}
const url = new URL(${toLiteral(origin + ask.path)});
${query}const reply = await fetch(url, ${init});
if (!reply.ok) {
  throw new Error(\`\${reply.status} \${await reply.text()}\`);
}
const answer = (await reply.json()) as { results: Row[]; truncated: boolean };
console.log(answer.results);
`;
}

function formatBody(body: object): string {
  const members = Object.entries(body).map(
    ([name, value]) => `${name}: ${typeof value === "number" ? JSON.stringify(value) : toLiteral(String(value))}`,
  );
  return `{ ${members.join(", ")} }`;
}
