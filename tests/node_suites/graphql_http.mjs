// Runs every audit of GraphQL over HTTP against an address and prints the results as JSON.
import { serverAudits } from 'graphql-http';

const [url, token] = process.argv.slice(2);
const fetchFn = (address, options = {}) =>
  fetch(address, { ...options, headers: { ...options.headers, authorization: `Bearer ${token}` } });
const results = [];
for (const audit of serverAudits({ url, fetchFn })) {
  const { status, reason } = await audit.fn();
  results.push({ name: audit.name, status, reason: reason ?? null });
}
console.log(JSON.stringify(results));
