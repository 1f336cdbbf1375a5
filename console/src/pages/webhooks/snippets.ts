// Programs that receive and verify messages. They read the secret from the environment variable WEBHOOK_SECRET.

/** Returns a receiver in Python. */
export function buildPythonReceiver(port: number): string {
  return `import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            event = WEBHOOK.verify(body, headers)  # also rejects messages that are older than five minutes
        except WebhookVerificationError:
            self.send_error(401)
            return
        print(headers["webhook-id"], event["type"], event["data"])  # ignore an id that you have processed
        self.send_response(204)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", ${port}), Receiver).serve_forever()
`;
}

/** Returns a receiver in TypeScript for Node.js. */
export function buildTypescriptReceiver(port: number): string {
  return `import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.WEBHOOK_SECRET ?? "");

createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) {
    parts.push(part);
  }
  try {
    // Also rejects messages that are older than five minutes.
    const event = webhook.verify(Buffer.concat(parts), request.headers as Record<string, string>);
    console.log(request.headers["webhook-id"], event); // ignore an id that you have processed
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
}).listen(${port}, "127.0.0.1");
`;
}

/** Returns the port of a URL on this machine; the receivers' usual port for another URL. */
export function findPort(url: string): number {
  const found = /^http:\/\/(?:127\.0\.0\.1|localhost):(\d+)/.exec(url)?.[1];
  return Number(found ?? 9000);
}
