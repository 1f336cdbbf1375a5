import { CodeBlock } from "@/components/CodeBlock.tsx";
import { buildHref } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Developers.module.css";
import { buildFirstCall, buildTokenCommand } from "./texts.ts";

/** Shell commands from an API key to a first reply. */
export function FirstCalls() {
  const lists = useHasRights("Workspace.Catalog.Read");
  const origin = window.location.origin;
  return (
    <Panel title="First calls">
      <ol class={css.steps}>
        <li>
          <p>
            1. Create an API key under <a href={buildHref("keys")}>Keys and tokens</a>. Store it in your program. Calls
            use tokens, which expire.
          </p>
        </li>
        <li>
          <p>2. Exchange it for a token that is valid for one hour.</p>
          <CodeBlock code={buildTokenCommand(origin)} label="Exchange of a key for a token with curl" />
        </li>
        <li>
          <p>3. {lists ? "List the queries." : "Show your identity."}</p>
          <CodeBlock code={buildFirstCall(origin, lists)} label="A first call with curl" />
        </li>
      </ol>
    </Panel>
  );
}
