import { addressOf } from "../run/ask.ts";
import { literal, type Subject } from "./text.ts";

/** The call for Python 3 without packages; the token is read from the environment. */
export function python({ ask, origin }: Subject): string {
  return ask.body ? posted(origin + ask.path, ask.body) : got(origin, ask);
}

function got(origin: string, ask: Subject["ask"]): string {
  const pairs = ask.query.map(([name, value]) => `    ${literal(name)}: ${literal(value)},\n`).join("");
  const query = ask.query.length === 0 ? "" : `query = urllib.parse.urlencode({\n${pairs}})\n`;
  const url = literal(origin + addressOf({ ...ask, query: [] }));
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

function posted(url: string, body: NonNullable<Subject["ask"]["body"]>): string {
  const members = Object.entries(body).map(([name, value]) => `    ${literal(name)}: ${written(value)},\n`);
  return `import json
import os
import urllib.request

body = {
${members.join("")}}
request = urllib.request.Request(
    ${literal(url)},
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

function written(value: string | number): string {
  return typeof value === "number" ? number(value) : literal(value);
}

function number(value: number): string {
  return Number.isFinite(value) ? String(value) : "None";
}
