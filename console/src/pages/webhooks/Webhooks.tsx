import { ListedItems } from "@/administration/ListedItems.tsx";
import { useAddressedView } from "@/administration/useAddressedView.ts";
import { api } from "@/api/index.ts";
import { fetchWebhooks, type Webhook } from "@/api/webhooks.ts";
import { Status } from "@/components/Badge.tsx";
import type { Column } from "@/components/columns.ts";
import { useResource } from "@/components/useResource.ts";
import type { PageProps } from "@/pageProps.ts";
import { NewWebhook } from "./NewWebhook.tsx";
import { WebhookPage } from "./WebhookPage.tsx";

const COLUMNS: readonly Column<Webhook>[] = [
  {
    key: "state",
    title: "State",
    width: 110,
    value: ({ enabled }) => (enabled ? "enabled" : "disabled"),
    render: (webhook) => <WebhookStatus {...webhook} />,
  },
  { key: "url", title: "URL", type: "code", value: ({ url }) => url },
  { key: "description", title: "Description", value: ({ description }) => description },
  { key: "format", title: "Format", width: 100, value: ({ format }) => format },
  { key: "events", title: "Events", value: ({ eventTypes }) => eventTypes.join(", ") },
  { key: "by", title: "Created by", width: 160, value: ({ createdBy }) => createdBy },
  { key: "at", title: "Created", type: "time", width: 164, value: ({ createdAt }) => createdAt },
];

/** Webhooks: the list, and the pages of one webhook. */
export default function Webhooks({ route }: PageProps) {
  const shown = useAddressedView(route, "Workspace.Webhook.Manage");
  if (shown.view === "item") {
    return <WebhookPage key={shown.key} id={shown.key} />;
  }
  return shown.view === "new" ? <NewWebhook /> : <WebhookList />;
}

function WebhookList() {
  const resource = useResource((signal) => fetchWebhooks(api, signal), []);
  return (
    <ListedItems
      page="webhooks"
      title="Webhooks"
      description="Addresses that receive a signed request when something happens in the workspace."
      addLabel="Add webhook"
      resource={resource}
      columns={COLUMNS}
      toKey={({ id }) => id}
      empty={{ title: "No webhooks", text: "Add one to send alerts and other events to a program, Teams or Slack." }}
    />
  );
}

/** Whether a webhook sends events, and whether the service disabled it. */
export function WebhookStatus({ enabled, disabledReason }: Pick<Webhook, "enabled" | "disabledReason">) {
  const tone = enabled ? "good" : disabledReason === null ? "neutral" : "bad";
  return <Status tone={tone}>{enabled ? "enabled" : "disabled"}</Status>;
}
