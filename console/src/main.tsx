import { render } from "preact";
import "@/styles/tokens.css";
import "@/styles/base.css";
import type { ApiError } from "@/api/problem.ts";
import { showToast } from "@/components/toasts.ts";
import { takeEntraReply } from "@/session/entra.ts";
import { session } from "@/session/index.ts";
import { takeCode } from "@/session/link.ts";
import { App } from "@/shell/App.tsx";
import { startTheme } from "@/shell/theme.ts";

startTheme();
start();
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
  if (reply) {
    void describeRefusal(session.signInWithEntra(reply));
  } else {
    void (code === undefined ? session.restore() : describeRefusal(session.signInWithCode(code)));
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
