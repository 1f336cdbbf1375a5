// GraphiQL for the GraphQL endpoint of the workspace, with a credential that is never stored.
import "graphiql/setup-workers/vite";
import "graphiql/style.css";
import "./page.css";

import { GraphiQL } from "graphiql";
import { createElement } from "react";
import { createRoot } from "react-dom/client";

const address = new URL("./graphql", window.location.href);
const root = createRoot(document.getElementById("graphiql"));
let uses = 0;

/** Create a storage in memory that ends with the page, because queries may name equipment and people. */
function createMemoryStorage() {
  const values = new Map();
  return {
    get length() {
      return values.size;
    },
    getItem: (name) => values.get(name) ?? null,
    setItem: (name, value) => void values.set(name, value),
    removeItem: (name) => void values.delete(name),
    clear: () => values.clear(),
  };
}

const storage = createMemoryStorage();

/**
 * Parse a reply without rounding whole numbers beyond 2^53; GraphiQL then displays their digits.
 *
 * Browsers without JSON.rawJSON still round them.
 */
function parseExactly(text) {
  if (!("rawJSON" in JSON) || !/\d{16}/.test(text)) {
    return JSON.parse(text);
  }
  return JSON.parse(text, (_, value, { source }) => {
    const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source);
    return isRounded ? JSON.rawJSON(source) : value;
  });
}

/** Create the function with which GraphiQL sends a request with a token. */
function createFetcher(token) {
  return async (parameters) => {
    const reply = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body: JSON.stringify(parameters),
      cache: "no-store",
    });
    return parseExactly(await reply.text());
  };
}

// The browser shows a page again from memory, with its credential, also to the next user after a sign-out.
window.addEventListener("pageshow", ({ persisted }) => persisted && window.location.reload());

document.getElementById("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = document.getElementById("token").value.trim();
  uses += 1;
  root.render(
    createElement(GraphiQL, {
      key: uses,
      fetcher: createFetcher(token),
      storage,
      shouldPersistHeaders: false,
      isHeadersEditorEnabled: false,
      initialQuery: "{\n  workspace {\n    name\n    stats {\n      connectionCount\n      surfaceCount\n      queryCount\n    }\n  }\n}\n",
    }),
  );
});
