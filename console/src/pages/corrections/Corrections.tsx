import { Empty } from "@/components/Empty.tsx";
import { Page } from "@/shell/Page.tsx";

export default function Corrections() {
  return (
    <Page title="Corrections" description="Corrections of records, with reason and approval.">
      <Empty title="The corrections are not there yet">Corrections will be proposed and decided here.</Empty>
    </Page>
  );
}
