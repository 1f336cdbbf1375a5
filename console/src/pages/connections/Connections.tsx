import { useAddressedView } from "@/administration/useAddressedView.ts";
import type { PageProps } from "@/pageProps.ts";
import { ConnectionList } from "./ConnectionList.tsx";
import { ConnectionPage, NewConnection } from "./ConnectionPage.tsx";

export default function Connections({ route }: PageProps) {
  const shown = useAddressedView(route, "Workspace.Catalog.Manage");
  if (shown.view === "item") {
    return <ConnectionPage key={shown.key} lookup={shown.key} />;
  }
  return shown.view === "new" ? <NewConnection /> : <ConnectionList />;
}
