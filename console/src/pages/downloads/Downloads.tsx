import { Empty } from "@/components/Empty.tsx";
import { Page } from "@/shell/Page.tsx";

export default function Downloads() {
  return (
    <Page title="Downloads" description="Telemetry of the archive as files.">
      <Empty title="The downloads are not there yet">Downloads will be started and fetched here.</Empty>
    </Page>
  );
}
