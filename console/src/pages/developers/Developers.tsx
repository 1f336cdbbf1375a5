import { useIdentity } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { Addresses } from "./Addresses.tsx";
import { Explorers } from "./Explorers.tsx";
import { FirstCalls } from "./FirstCalls.tsx";
import { McpClients } from "./McpClients.tsx";

/** How programs use the workspace. */
export default function Developers() {
  const workspace = useIdentity().workspace ?? "";
  return (
    <Page
      title="Developers"
      description="How programs use this workspace: all that the console does, and more, by its API."
    >
      <Explorers workspace={workspace} />
      <FirstCalls />
      <McpClients workspace={workspace} />
      <Addresses workspace={workspace} />
    </Page>
  );
}
