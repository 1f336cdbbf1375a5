// Runs the protocol's conformance scenarios against a server that wants a token, which the suite cannot send: a proxy
// adds it and passes everything else on as it is. Arguments: address, token, then those of the suite.
import { spawn } from 'node:child_process';
import http from 'node:http';

const [address, token, ...options] = process.argv.slice(2);
const target = new URL(address);
const proxy = http.createServer((request, response) => {
  const { hostname, port } = target;
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const forward = http.request({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  forward.on('error', () => response.writeHead(502).end());
  request.pipe(forward);
});
await new Promise((listening) => proxy.listen(0, '127.0.0.1', listening));
const suite = new URL('node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url).pathname;
const url = `http://127.0.0.1:${proxy.address().port}${target.pathname}`;
const run = spawn(process.execPath, [suite, 'server', '--url', url, ...options], { stdio: 'inherit' });
process.exitCode = await new Promise((ended) => run.on('exit', ended));
proxy.close();
proxy.closeAllConnections();
