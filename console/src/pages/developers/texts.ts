/** Stands where a token goes; the real one is in no text that people copy. */
const TOKEN = "TOKEN";

/** Gets a token for a key: sets TOKEN in a POSIX shell. */
export function buildTokenCommand(origin: string): string {
  return `read -rs KEY    # paste the key; it is not shown
TOKEN=$(curl --fail-with-body -sS '${origin}/workspace/api/keys/jwt?minutes=60' \\
  -H "Authorization: Bearer $KEY" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Token"])')
`;
}

/** A call that every such token may make. */
export function buildFirstCall(origin: string, lists: boolean): string {
  const path = lists ? "/oi-api/warm-queries" : "/workspace/api/keys/whoami";
  return `curl --fail-with-body -sS '${origin}${path}' -H "Authorization: Bearer $TOKEN"\n`;
}

/** How a client of the Model Context Protocol is told about the workspace. */
export interface McpClient {
  id: string;
  title: string;
  /** Where the text goes. */
  where: string;
  text: (name: string, url: string) => string;
}

const bearer = { Authorization: `Bearer ${TOKEN}` };

/** The clients that are asked for most; every other takes an address and a header, too. */
export const MCP_CLIENTS: readonly McpClient[] = [
  {
    id: "claude-code",
    title: "Claude Code",
    where: "Run it in a shell; .mcp.json in a project takes the JSON of Cursor with “type”: “http”.",
    text: (name, url) => `claude mcp add --transport http ${name} '${url}' --header 'Authorization: Bearer ${TOKEN}'\n`,
  },
  {
    id: "claude-desktop",
    title: "Claude Desktop",
    where:
      "Settings, Developer, Edit config: claude_desktop_config.json. It starts a bridge with Node.js, which holds the header.",
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
    where: ".vscode/mcp.json; the token is asked for once and kept by VS Code.",
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

/** A name that the client itself fills in. */
function toVariableName(name: string): string {
  return `$\{${name}}`;
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
