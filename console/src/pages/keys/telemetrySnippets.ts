import { quoteForShell, toLiteral } from "@/components/literals.ts";

/** A key that sends telemetry, and the address of the service. */
export interface Sender {
  /** Scheme and host: `https://plant.example`. */
  origin: string;
  keyId: string;
  /** Lookup of the connection. */
  connection: string;
  /** Device id that the key allows. */
  device: string;
}

/** Returns a device id that matches the first pattern of a key; the connection's lookup if all devices are allowed. */
export function suggestDevice(connection: string, patterns: readonly string[] | null | undefined): string {
  const [first] = patterns ?? [];
  return first === undefined ? connection : first.replace(/\[(.)[^\]]*\]/g, "$1").replace(/[*?]/g, "1");
}

/** Returns calls for curl in a POSIX shell: the exchange of the key for a token, and one message. */
export function buildCurl({ origin, connection, device }: Sender): string {
  const message = JSON.stringify({ deviceId: device, temperature: 21.5 });
  return `TOKEN=$(curl --fail-with-body -sS -H "Authorization: Bearer $OI_KEY" ${quoteForShell(`${origin}/workspace/api/keys/jwt`)} \\
  | sed 's/.*"Token": *"\\([^"]*\\)".*/\\1/')
curl --fail-with-body -sS ${quoteForShell(`${origin}/oi-api/telemetry/${connection}`)} \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  --data-raw ${quoteForShell(message)}
`;
}

/** Processor of Telegraf that computes message ids (docs/how-to/connect/telegraf.md explains it). */
const MESSAGE_IDS = `[[processors.starlark]]
  source = '''
load("json.star", "json")

def apply(metric):
    identity = json.encode([metric.time, metric.name, sorted(metric.tags.items()), sorted(metric.fields.keys())])
    digest = 0x6c62272e07bb014262b821756295c58d
    for byte in identity.elem_ords():
        digest = ((digest ^ byte) * 0x1000000000000000000013b) % (1 << 128)
    metric.tags["message_id"] = "%x" % digest
    return metric
'''
`;

/**
 * Returns a processor and an output of Telegraf, which signs in by OAuth client credentials. Each metric has a message
 * id, so that the service stores a metric once that Telegraf sends again. Telegraf repeats no batch that is rejected
 * as invalid. The body is not compressed, because Telegraf would send it in chunks, which Azure does not accept.
 */
export function buildTelegraf({ origin, keyId, connection, device }: Sender): string {
  const members = `{"timestamp": timestamp, "deviceId": ${toLiteral(device)}, "messageId": tags.message_id}`;
  return `[agent]
  metric_batch_size = 500

${MESSAGE_IDS}
[[outputs.http]]
  url = ${toLiteral(`${origin}/oi-api/telemetry/${connection}`)}
  method = "POST"
  token_url = ${toLiteral(`${origin}/oauth2/token`)}
  client_id = ${toLiteral(keyId)}
  client_secret = "\${OI_KEY}"
  non_retryable_statuscodes = [400, 413]
  data_format = "json"
  json_timestamp_format = "2006-01-02T15:04:05.999999Z07:00"
  json_transformation = ${quoteForToml(`[metrics.$merge([fields, ${members}])]`)}
  [outputs.http.headers]
    Content-Type = "application/json"
`;
}

/** Returns a flow for the import of Node-RED: it sends the payload of each message, and renews its token. */
export function buildNodeRed({ origin, connection, device }: Sender): string {
  const sign = `const token = flow.get("token");
if (token && token.until > Date.now()) {
    msg.headers = { Authorization: "Bearer " + token.value };
    return [null, msg];
}
msg.message = msg.payload;
msg.headers = { Authorization: "Bearer " + env.get("OI_KEY") };
return [msg, null];`;
  const keep = `flow.set("token", { value: msg.payload.Token, until: Date.parse(msg.payload.ExpiresAt) - 60000 });
msg.headers = { Authorization: "Bearer " + msg.payload.Token };
msg.payload = msg.message;
return msg;`;
  const nodes = [
    {
      id: "oi-message",
      type: "inject",
      name: "a message",
      repeat: "10",
      props: [{ p: "payload" }],
      payload: JSON.stringify({ deviceId: device, temperature: 21.5 }),
      payloadType: "json",
      wires: [["oi-sign"]],
    },
    { id: "oi-sign", type: "function", name: "token", func: sign, outputs: 2, wires: [["oi-token"], ["oi-send"]] },
    {
      id: "oi-token",
      type: "http request",
      name: "new token",
      method: "GET",
      ret: "obj",
      url: `${origin}/workspace/api/keys/jwt`,
      wires: [["oi-keep"]],
    },
    { id: "oi-keep", type: "function", name: "store the token", func: keep, outputs: 1, wires: [["oi-send"]] },
    {
      id: "oi-send",
      type: "http request",
      name: connection,
      method: "POST",
      ret: "obj",
      url: `${origin}/oi-api/telemetry/${connection}`,
      wires: [["oi-reply"]],
    },
    { id: "oi-reply", type: "debug", name: "reply", complete: "payload", targetType: "msg", active: true, wires: [] },
  ];
  return `${JSON.stringify(nodes, null, 2)}\n`;
}

/** Returns a program for the Python client. */
export function buildPythonClient({ origin, connection, device }: Sender): string {
  return `import os

from oi import Workspace

workspace = Workspace(${toLiteral(origin)}, key=os.environ["OI_KEY"])
workspace.telemetry.send(${toLiteral(connection)}, [{"deviceId": ${toLiteral(device)}, "temperature": 21.5}])
`;
}

/** Quotes a text of one line for TOML; a text with apostrophes becomes a basic string. */
function quoteForToml(text: string): string {
  return text.includes("'") ? toLiteral(text) : `'${text}'`;
}
