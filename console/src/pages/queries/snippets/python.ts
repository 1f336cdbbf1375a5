import { toLiteral } from "@/components/literals.ts";
import { buildAddress } from "../run/queryCall.ts";
import type { Subject } from "./text.ts";

/** Returns the call for Python 3 without packages, with the token from the environment. */
export function buildPython({ ask, origin }: Subject): string {
  return ask.body ? formatPost(origin + ask.path, ask.body) : formatGet(origin, ask);
}

function formatGet(origin: string, ask: Subject["ask"]): string {
  const pairs = ask.query.map(([name, value]) => `        ${toLiteral(name)}: ${toLiteral(value)},\n`).join("");
  const query = ask.query.length === 0 ? "" : `query = urllib.parse.urlencode(\n    {\n${pairs}    }\n)\n`;
  const url = toLiteral(origin + buildAddress({ ...ask, query: [] }));
  return `import json
import os
import urllib.parse
import urllib.request

${query}request = urllib.request.Request(
    ${url}${query === "" ? "" : ' + "?" + query'},
    headers={"Authorization": "Bearer " + os.environ["TOKEN"]},
)
${READ}`;
}

function formatPost(url: string, body: NonNullable<Subject["ask"]["body"]>): string {
  const members = Object.entries(body).map(([name, value]) => `    ${toLiteral(name)}: ${formatLiteral(value)},\n`);
  return `import json
import os
import urllib.request

body = {
${members.join("")}}
request = urllib.request.Request(
    ${toLiteral(url)},
    data=json.dumps(body).encode(),
    headers={"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"},
)
${READ}`;
}

const READ = `with urllib.request.urlopen(request) as reply:
    answer = json.load(reply)
for row in answer["results"]:
    print(row)
`;

function formatLiteral(value: string | number): string {
  return typeof value === "number" ? formatNumber(value) : toLiteral(value);
}

function formatNumber(value: number): string {
  return Number.isFinite(value) ? String(value) : "None";
}
