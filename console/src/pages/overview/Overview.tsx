import { Empty } from "@/components/Empty.tsx";
import type { PageProps } from "@/pageProps.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { Connections } from "./Connections.tsx";
import { LivePanel } from "./LivePanel.tsx";

export default function Overview({ route }: PageProps) {
  const listens = useHasRights("Workspace.LiveStream.Read");
  const reads = useHasRights("Workspace.Catalog.Read");
  const query = Object.fromEntries(route.query);
  const show = (connection: string) =>
    navigate(buildHref("overview", [], { ...query, connection, surface: undefined, fields: undefined }), "replace");
  const live = listens ? (
    <LivePanel query={route.query} />
  ) : (
    <Panel title="Live data from the plant">
      <Empty title="Your token cannot open the live stream">
        This needs the right Workspace.LiveStream.Read. Sign in with a key that has it, or ask an administrator.
      </Empty>
    </Panel>
  );
  return (
    <Page title="Overview" description="Live telemetry and connections of the plant.">
      {reads ? (
        <Connections selected={route.query.get("connection") ?? ""} onOpen={listens ? show : undefined}>
          {live}
        </Connections>
      ) : (
        live
      )}
    </Page>
  );
}
