import { Empty } from "@/components/Empty.tsx";
import { Page } from "@/shell/Page.tsx";

export default function Overview() {
  return (
    <Page title="Overview" description="What the plant sends, as it comes in.">
      <Empty title="The overview is not there yet">
        Connections, surfaces and their newest messages will stand here.
      </Empty>
    </Page>
  );
}
