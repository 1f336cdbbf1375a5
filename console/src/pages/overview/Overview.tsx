import { Empty } from "@/components/Empty.tsx";
import type { PageProps } from "@/pages.ts";
import { go, href } from "@/router/route.ts";
import { useCan } from "@/session/hooks.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { Connections } from "./Connections.tsx";
import { LivePanel } from "./LivePanel.tsx";

export default function Overview({ route }: PageProps) {
  const listens = useCan("Workspace.LiveStream.Read");
  const reads = useCan("Workspace.Catalog.Read");
  const query = Object.fromEntries(route.query);
  const show = (connection: string) =>
    go(href("overview", [], { ...query, connection, surface: undefined, fields: undefined }), "replace");
  return (
    <Page title="Overview" description="What the plant sends, as it comes in.">
      {reads && <Connections selected={route.query.get("connection") ?? ""} onOpen={listens ? show : undefined} />}
      {listens ? (
        <LivePanel query={route.query} />
      ) : (
        <Panel title="Live">
          <Empty title="Your token does not open the live stream">
            It needs Workspace.LiveStream.Read. Sign in with a key that carries it, or ask an administrator.
          </Empty>
        </Panel>
      )}
    </Page>
  );
}
