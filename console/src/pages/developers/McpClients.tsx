import { useState } from "preact/hooks";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import { buildHref } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Developers.module.css";
import { MCP_CLIENTS } from "./texts.ts";

/** Configurations for the clients of AI assistants. */
export function McpClients({ workspace }: { workspace: string }) {
  const uses = useHasRights("Workspace.Mcp.Use");
  const [chosen, setChosen] = useState(MCP_CLIENTS[0]?.id ?? "");
  const client = MCP_CLIENTS.find((each) => each.id === chosen);
  return (
    <Panel title="AI assistants">
      <p class={css.note}>
        The workspace is a Model Context Protocol server. Give each assistant its own token, created under{" "}
        <a href={buildHref("keys")}>Keys and tokens</a>, with Workspace.Mcp.Use and the rights for its tasks. The rights
        of the token determine its tools. All tools are read-only.
      </p>
      {!uses && (
        <Notice kind="warn" title="Your rights do not include Workspace.Mcp.Use">
          <p>Your tokens cannot use the server. Ask an administrator for the right.</p>
        </Notice>
      )}
      <Tabs label="Client" tabs={MCP_CLIENTS} selected={chosen} onSelect={setChosen}>
        {client && (
          <div class={css.panel}>
            <CodeBlock
              code={client.text(workspace, `${window.location.origin}/oi-api/mcp`)}
              label={`Configuration of ${client.title}`}
            />
            <p class={css.note}>{client.where} Replace TOKEN with the token.</p>
          </div>
        )}
      </Tabs>
    </Panel>
  );
}
