import { Empty } from "@/components/Empty.tsx";
import { Page } from "@/shell/Page.tsx";

export default function Developers() {
  return (
    <Page title="Developers" description="How programs use this workspace.">
      <Empty title="This page is not there yet">The API, its description and its clients will be explained here.</Empty>
    </Page>
  );
}
