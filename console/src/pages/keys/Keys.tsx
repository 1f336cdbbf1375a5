import { Tabs } from "@/components/Tabs.tsx";
import type { PageProps } from "@/pageProps.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { Page } from "@/shell/Page.tsx";
import { ApiKeys } from "./ApiKeys.tsx";
import { Applications } from "./Applications.tsx";
import { CreateToken } from "./CreateToken.tsx";
import { RevokeToken } from "./RevokeToken.tsx";
import { Usage } from "./Usage.tsx";

const TABS = [
  { id: "token", title: "Create a token" },
  { id: "keys", title: "API keys" },
  { id: "revoke", title: "Revoke a token" },
  { id: "applications", title: "Applications" },
] as const;

/** The page to create, list and revoke tokens and API keys. */
export default function Keys({ route }: PageProps) {
  const view = TABS.find((tab) => tab.id === route.rest[0])?.id ?? "token";
  return (
    <Page
      title="Keys and tokens"
      description="A token gives access to the API until it expires; an API key issues tokens until it is revoked."
      actions={<Usage />}
    >
      <Tabs label="Views" tabs={TABS} selected={view} onSelect={(chosen) => navigate(buildHref("keys", [chosen]))}>
        {view === "token" && <CreateToken />}
        {view === "keys" && <ApiKeys />}
        {view === "revoke" && <RevokeToken />}
        {view === "applications" && <Applications />}
      </Tabs>
    </Page>
  );
}
