import { Empty } from "@/components/Empty.tsx";
import { Page } from "@/shell/Page.tsx";

export default function Keys() {
  return (
    <Page title="Keys and tokens" description="API keys and tokens.">
      <Empty title="The keys are not there yet">Keys will be made, listed and revoked here.</Empty>
    </Page>
  );
}
