import { useAddressedView } from "@/administration/useAddressedView.ts";
import type { PageProps } from "@/pageProps.ts";
import { SurfaceList } from "./SurfaceList.tsx";
import { NewSurface, SurfacePage } from "./SurfacePage.tsx";

export default function Surfaces({ route }: PageProps) {
  const shown = useAddressedView(route, "Workspace.Catalog.Manage");
  if (shown.view === "item") {
    return <SurfacePage key={shown.key} lookup={shown.key} />;
  }
  return shown.view === "new" ? <NewSurface /> : <SurfaceList />;
}
