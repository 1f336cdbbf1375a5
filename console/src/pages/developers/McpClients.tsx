import { useState } from "preact/hooks";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import { buildHref } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Developers.module.css";
import { MCP_CLIENTS } from "./texts.ts";

/** What an AI assistant's client is told. */
export function McpClients({ workspace }: { workspace: string }) {
  const uses = useHasRights("Workspace.Mcp.Use");
  const [chosen, setChosen] = useState(MCP_CLIENTS[0]?.id ?? "");
  const client = MCP_CLIENTS.find((each) => each.id === chosen);
  return (
    <Panel title="AI assistants">
      <p class={css.note}>
        The workspace is a server of the Model Context Protocol. Give an assistant a token of its own, made under{" "}
        <a href={buildHref("keys")}>Keys and tokens</a>, with Workspace.Mcp.Use and what else it shall do; its tools
        follow from that. None of them approves or changes anything.
      </p>
      {!uses && (
        <Notice kind="warn" title="Your rights do not include Workspace.Mcp.Use">
          <p>A token that you make cannot use the server. Ask an administrator for the right.</p>
        </Notice>
      )}
      <Tabs label="Client" tabs={MCP_CLIENTS} selected={chosen} onSelect={setChosen}>
        {client && (
          <div class={css.panel}>
            <CodeBlock
              code={client.text(workspace, `${window.location.origin}/oi-api/mcp`)}
              label={`Configuration of ${client.title}`}
            />
            <p class={css.note}>{client.where} Put the token in the place of TOKEN.</p>
          </div>
        )}
      </Tabs>
    </Panel>
  );
}
