// Loads the OpenAPI document that the caller may read, and shows it in Swagger UI, which sends requests as the caller.
// The credential is the console's session of this tab, or one that is entered here: a token, or an API key.
"use strict";

/** Names under which the console stores its session and its theme. */
const SESSION = "workspace-console";
const THEME = "workspace-console-theme";
const KEY_PREFIX = "oik_";

const form = document.getElementById("sign-in");
const problem = document.getElementById("problem");
const signedIn = document.getElementById("signed-in");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

applyTheme();
dark.addEventListener("change", applyTheme);
window.addEventListener("storage", applyTheme);
// The browser shows a page again from memory, with its credential, also to the next user after a sign-out.
window.addEventListener("pageshow", ({ persisted }) => persisted && window.location.reload());
form.addEventListener("submit", (event) => {
  event.preventDefault();
  void open(document.getElementById("credential").value.trim());
});
document.getElementById("other").addEventListener("click", () => {
  signedIn.hidden = true;
  form.hidden = false;
  document.getElementById("credential").focus();
});
/** Number of attempts to open the operations; only the reply to the newest one counts. */
let attempts = 0;
const session = readSession();
if (session === undefined) {
  form.hidden = false;
} else {
  void open(session);
}

/** Use the theme of the console: the user's choice, otherwise the machine's preference. */
function applyTheme() {
  const wanted = readStorage(() => localStorage.getItem(THEME)) ?? (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  document.documentElement.classList.toggle("dark-mode", wanted === "dark");
}

/** Return the token of the console's session in this tab; undefined if there is none or it has expired. */
function readSession() {
  const stored = readStorage(() => JSON.parse(sessionStorage.getItem(SESSION) ?? "null"));
  return stored && new Date(stored.until) > new Date() ? stored.token : undefined;
}

function readStorage(read) {
  try {
    return read() ?? undefined;
  } catch {
    return undefined;
  }
}

/** Show the operations of a credential, or why it was rejected. */
async function open(credential) {
  problem.textContent = "";
  attempts += 1;
  const mine = attempts;
  try {
    const token = credential.startsWith(KEY_PREFIX) ? await exchangeKey(credential) : credential;
    const [spec, who] = await Promise.all([
      fetchJson("/oi-api/openapi", token),
      fetchJson("/workspace/api/keys/whoami", token),
    ]);
    if (mine !== attempts) {
      return;
    }
    document.getElementById("who").textContent = who.name || who.principal || "a service";
    signedIn.hidden = false;
    form.hidden = true;
    showDocument(spec, token);
  } catch (error) {
    if (mine !== attempts) {
      return;
    }
    problem.textContent = error.message;
    signedIn.hidden = true;
    form.hidden = false;
  }
}

/** Exchange an API key for a token, so that requests contain no key. */
async function exchangeKey(key) {
  return (await fetchJson("/workspace/api/keys/jwt", key)).Token;
}

async function fetchJson(address, credential) {
  const headers = { Authorization: `Bearer ${credential}`, Accept: "application/json" };
  const reply = await fetch(address, { headers, cache: "no-store" }).catch(() => {
    throw new Error("The service does not respond. Check that it runs, then try again.");
  });
  const body = await reply.json().catch(() => ({}));
  if (!reply.ok) {
    throw new Error(`${body.detail ?? `Status ${reply.status}`} (${body.code}, request ${body.traceId})`);
  }
  return body;
}

function showDocument(spec, token) {
  SwaggerUIBundle({
    spec,
    dom_id: "#explorer",
    deepLinking: false,
    validatorUrl: null,
    persistAuthorization: false,
    tryItOutEnabled: true,
    // Otherwise the curl command that Swagger UI shows for copying would contain the token.
    showMutatedRequest: false,
    displayRequestDuration: true,
    docExpansion: "list",
    // Send the token only to the origin of this page, whatever servers the OpenAPI document names.
    requestInterceptor: (request) => {
      const target = new URL(request.url, window.location.href);
      if (target.origin !== window.location.origin) {
        throw new Error(`The request was not sent, because ${target.origin} is not the origin of this page.`);
      }
      request.headers.Authorization = `Bearer ${token}`;
      return request;
    },
  });
}
