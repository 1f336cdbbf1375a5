import { Empty } from "@/components/Empty.tsx";
import { Page } from "@/shell/Page.tsx";

export default function Queries() {
  return (
    <Page title="Queries" description="Approved questions, and questions of your own.">
      <Empty title="The queries are not there yet">Warm queries will be listed, run, written and approved here.</Empty>
    </Page>
  );
}
