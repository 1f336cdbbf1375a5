import { render } from "preact";
import "@/styles/tokens.css";
import "@/styles/base.css";
import { takeEntraReply } from "@/session/entra.ts";
import { session } from "@/session/index.ts";
import { takeCode } from "@/session/link.ts";
import { App } from "@/shell/App.tsx";
import { startTheme } from "@/shell/theme.ts";

startTheme();
start();
// A sign-in link pasted into a tab that shows the console changes nothing but the part behind the #.
window.addEventListener("hashchange", () => {
  const code = takeCode();
  if (code !== undefined) {
    void session.withCode(code);
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
    void session.withEntra(reply);
  } else {
    void (code === undefined ? session.restore() : session.withCode(code));
  }
}
