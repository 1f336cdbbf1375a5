import { render } from "preact";
import "@/styles/tokens.css";
import "@/styles/base.css";
import type { ApiError } from "@/api/problem.ts";
import { showToast } from "@/components/toasts.ts";
import { type EntraReply, takeEntraReply } from "@/session/entra.ts";
import { offerReply } from "@/session/entraTab.ts";
import { session } from "@/session/index.ts";
import { takeCode } from "@/session/link.ts";
import { rememberConsent } from "@/session/pendingConsent.ts";
import { reloadAfterSignOut } from "@/session/restoredPage.ts";
import { App } from "@/shell/App.tsx";
import { preloadPage } from "@/shell/preload.ts";
import { startTheme } from "@/shell/theme.ts";
import { continueSignature } from "@/signing/entraReturn.ts";

startTheme();
rememberConsent(window.location.hash);
window.addEventListener("pageshow", (event) => reloadAfterSignOut(session, event));
start();
if (session.state.state === "starting") {
  preloadPage(window.location.hash);
}
// A sign-in link pasted into an open console changes only the part of the address after the #.
window.addEventListener("hashchange", () => {
  const code = takeCode();
  if (code !== undefined) {
    void describeRefusal(session.signInWithCode(code));
  }
});
const root = document.getElementById("app");
if (root) {
  render(<App />, root);
}

function start(): void {
  const reply = takeEntraReply();
  const code = takeCode();
  if (reply && !reply.pending) {
    void handOver(reply);
  } else if (reply) {
    void describeRefusal(reply.pending?.signs ? continueSignature(reply) : session.signInWithEntra(reply));
  } else {
    void (code === undefined ? session.restore() : describeRefusal(session.signInWithCode(code)));
  }
}

/** Gives a reply to the tab that began the sign-in, and closes this one; signs in here, which fails, without such a tab. */
async function handOver(reply: EntraReply): Promise<void> {
  if (await offerReply(reply)) {
    window.close();
  } else {
    await describeRefusal(session.signInWithEntra(reply));
  }
}

/** Shows why a sign-in failed, if the earlier session continues. */
async function describeRefusal(attempt: Promise<ApiError | undefined>): Promise<void> {
  const refused = await attempt;
  if (refused) {
    const which = [refused.code, refused.requestId].filter(Boolean).join(", ");
    showToast(`You remain signed in as before: ${refused.detail} (${which})`, "bad");
  }
}
