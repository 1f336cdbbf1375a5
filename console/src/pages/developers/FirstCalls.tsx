import { CodeBlock } from "@/components/CodeBlock.tsx";
import { buildHref } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Developers.module.css";
import { buildFirstCall, buildTokenCommand } from "./texts.ts";

/** From a key to a first answer, in a shell. */
export function FirstCalls() {
  const lists = useHasRights("Workspace.Catalog.Read");
  const origin = window.location.origin;
  return (
    <Panel title="First calls">
      <ol class={css.steps}>
        <li>
          <p>
            1. Make an API key under <a href={buildHref("keys")}>Keys and tokens</a>. It belongs into the keeping of a
            program, not into calls: those carry tokens, which end by themselves.
          </p>
        </li>
        <li>
          <p>2. Exchange it for a token of an hour.</p>
          <CodeBlock code={buildTokenCommand(origin)} label="Exchange of a key for a token with curl" />
        </li>
        <li>
          <p>3. {lists ? "List the queries." : "Ask who you are."}</p>
          <CodeBlock code={buildFirstCall(origin, lists)} label="A first call with curl" />
        </li>
      </ol>
    </Panel>
  );
}
