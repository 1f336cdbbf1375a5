import { useIdentity } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import { Addresses } from "./Addresses.tsx";
import { Explorers } from "./Explorers.tsx";
import { FirstCalls } from "./FirstCalls.tsx";
import { McpClients } from "./McpClients.tsx";

/** The page for developers. */
export default function Developers() {
  const workspace = useIdentity().workspace ?? "";
  return (
    <Page title="Developers" description="Addresses, examples and configurations for programs that use this workspace.">
      <Explorers workspace={workspace} />
      <FirstCalls />
      <McpClients workspace={workspace} />
      <Addresses workspace={workspace} />
    </Page>
  );
}
