import { Empty } from "@/components/Empty.tsx";
import { Page } from "@/shell/Page.tsx";

export default function Audit() {
  return (
    <Page title="Audit log" description="What happened in the workspace, in hash-chained records.">
      <Empty title="The audit log is not there yet">Events will be searched, verified and exported here.</Empty>
    </Page>
  );
}
