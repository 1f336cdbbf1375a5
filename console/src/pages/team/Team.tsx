import { useAddressedView } from "@/administration/useAddressedView.ts";
import type { PageProps } from "@/pageProps.ts";
import { MemberList } from "./MemberList.tsx";
import { MemberPage } from "./MemberPage.tsx";
import { NewMember } from "./NewMember.tsx";

export default function Team({ route }: PageProps) {
  const shown = useAddressedView(route, "Workspace.Team.Manage");
  if (shown.view === "item") {
    return <MemberPage key={shown.key} id={shown.key} />;
  }
  return shown.view === "new" ? <NewMember /> : <MemberList />;
}
