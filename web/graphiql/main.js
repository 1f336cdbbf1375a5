// GraphiQL over the workspace's own GraphQL address, with a credential that is kept nowhere.
import "graphiql/setup-workers/vite";
import "graphiql/style.css";
import "./page.css";

import { GraphiQL } from "graphiql";
import { createElement } from "react";
import { createRoot } from "react-dom/client";

const address = new URL("./graphql", window.location.href);
const root = createRoot(document.getElementById("graphiql"));
let uses = 0;

/** Storage that ends with the page: what is typed here may name equipment and people. */
function memory() {
  const kept = new Map();
  return {
    get length() {
      return kept.size;
    },
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
    clear: () => kept.clear(),
  };
}

const storage = memory();

function fetcher(token) {
  return async (parameters) => {
    const reply = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body: JSON.stringify(parameters),
      cache: "no-store",
    });
    return reply.json();
  };
}

document.getElementById("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = document.getElementById("token").value.trim();
  uses += 1;
  root.render(
    createElement(GraphiQL, {
      key: uses,
      fetcher: fetcher(token),
      storage,
      shouldPersistHeaders: false,
      isHeadersEditorEnabled: false,
      initialQuery: "{\n  workspace {\n    name\n    stats {\n      connectionCount\n      surfaceCount\n      queryCount\n    }\n  }\n}\n",
    }),
  );
});
