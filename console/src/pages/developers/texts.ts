/** Placeholder for a token; texts to copy never contain a real one. */
const TOKEN = "TOKEN";

/** Returns the POSIX shell command that exchanges a key and sets TOKEN. */
export function buildTokenCommand(origin: string): string {
  return `read -rs KEY    # paste the key; it is not shown
TOKEN=$(curl --fail-with-body -sS '${origin}/workspace/api/keys/jwt?minutes=60' \\
  -H "Authorization: Bearer $KEY" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Token"])')
`;
}

/** Returns a first call that the token permits. */
export function buildFirstCall(origin: string, lists: boolean): string {
  const path = lists ? "/oi-api/warm-queries" : "/workspace/api/keys/whoami";
  return `curl --fail-with-body -sS '${origin}${path}' -H "Authorization: Bearer $TOKEN"\n`;
}

/** Configuration of a Model Context Protocol client. */
export interface McpClient {
  id: string;
  title: string;
  /** Place for the text. */
  where: string;
  text: (name: string, url: string) => string;
}

const bearer = { Authorization: `Bearer ${TOKEN}` };

/** The most common clients; others need the same address and header. */
export const MCP_CLIENTS: readonly McpClient[] = [
  {
    id: "claude-code",
    title: "Claude Code",
    where: 'Run it in a shell. For .mcp.json in a project, use the JSON under Cursor and add "type": "http".',
    text: (name, url) => `claude mcp add --transport http ${name} '${url}' --header 'Authorization: Bearer ${TOKEN}'\n`,
  },
  {
    id: "claude-desktop",
    title: "Claude Desktop",
    where:
      "Settings, Developer, Edit config: claude_desktop_config.json. It starts a Node.js bridge, which sends the header.",
    text: (name, url) =>
      toJson({
        mcpServers: {
          [name]: {
            command: "npx",
            args: [
              "-y",
              "mcp-remote",
              url,
              "--transport",
              "http-only",
              "--header",
              `Authorization:${toVariableName("AUTHORIZATION")}`,
            ],
            env: { AUTHORIZATION: bearer.Authorization },
          },
        },
      }),
  },
  {
    id: "vs-code",
    title: "VS Code",
    where: ".vscode/mcp.json; VS Code prompts for the token once and stores it.",
    text: (name, url) =>
      toJson({
        inputs: [{ type: "promptString", id: "token", description: `Token for ${name}`, password: true }],
        servers: {
          [name]: { type: "http", url, headers: { Authorization: `Bearer ${toVariableName("input:token")}` } },
        },
      }),
  },
  {
    id: "cursor",
    title: "Cursor",
    where: ".cursor/mcp.json in a project, or ~/.cursor/mcp.json.",
    text: (name, url) => toJson({ mcpServers: { [name]: { url, headers: bearer } } }),
  },
  {
    id: "other",
    title: "Other",
    where: "Streamable HTTP, stateless; revisions 2026-07-28 and 2025-11-25 of the protocol.",
    text: (name, url) => toJson({ mcpServers: { [name]: { type: "http", url, headers: bearer } } }),
  },
];

/** Returns a variable that the client replaces. */
function toVariableName(name: string): string {
  return `$\{${name}}`;
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
