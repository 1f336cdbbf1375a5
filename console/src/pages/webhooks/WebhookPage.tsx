import { useState } from "preact/hooks";
import { ChangePanel } from "@/administration/ChangePanel.tsx";
import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { ItemPage, type ShownItem } from "@/administration/ItemPage.tsx";
import { RemoveButton } from "@/administration/RemoveButton.tsx";
import { useItemForm } from "@/administration/useItemForm.ts";
import { type Webhook, type WebhookWithSecret, webhookPath } from "@/api/webhooks.ts";
import { Button } from "@/components/Button.tsx";
import { Facts } from "@/components/Facts.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { showToast } from "@/components/toasts.ts";
import { Panel } from "@/shell/Page.tsx";
import { Deliveries } from "./Deliveries.tsx";
import { RotateDialog } from "./RotateDialog.tsx";
import { VerificationSnippets } from "./VerificationSnippets.tsx";
import { WebhookFields } from "./WebhookFields.tsx";
import { WebhookSecret } from "./WebhookSecret.tsx";
import { WebhookStatus } from "./Webhooks.tsx";
import { NEW_WEBHOOK, WEBHOOK_FORM } from "./webhookDraft.ts";

/** One webhook: state, deliveries, definition, verification and changes. */
export function WebhookPage({ id }: { id: string }) {
  const [made, setMade] = useState<WebhookWithSecret>();
  return (
    <ItemPage<Webhook>
      path={webhookPath(id)}
      name={id}
      list={{ page: "webhooks", title: "All webhooks" }}
      toTitle={({ description, url }) => description ?? url}
      actions={({ item, reload }) => (
        <RemoveButton
          noun="webhook"
          name={item.description ?? item.url}
          path={webhookPath(item.id)}
          etag={item.etag}
          page="webhooks"
          onReload={reload}
        >
          <p>It receives no further events, and its waiting deliveries are not sent.</p>
        </RemoveButton>
      )}
    >
      {(shown) => (
        <>
          {made && <WebhookSecret webhook={made} onDone={() => setMade(undefined)} />}
          <Shown {...shown} onRotated={setMade} />
        </>
      )}
    </ItemPage>
  );
}

type Props = ShownItem<Webhook> & { onRotated: (made: WebhookWithSecret) => void };

function Shown({ item, isRemoved, replace, onRotated }: Props) {
  const form = useItemForm(
    WEBHOOK_FORM,
    item,
    NEW_WEBHOOK,
    (saved) => {
      replace(saved);
      showToast("The webhook is saved");
    },
    replace,
  );
  return (
    <>
      {!isRemoved && (
        <>
          <StatePanel
            webhook={item}
            onRotated={(made) => {
              const { secret: _, ...webhook } = made;
              replace(webhook);
              onRotated(made);
            }}
          />
          <Deliveries webhook={item} />
        </>
      )}
      <Panel title="Definition">
        <ItemFormFrame form={form} editable createLabel="Add webhook">
          <WebhookFields form={form} />
        </ItemFormFrame>
      </Panel>
      <VerificationSnippets url={item.url} />
      <ChangePanel
        isRemoved={isRemoved}
        item={item}
        audited={{ target: "PlatformConfig", entityTypes: ["Webhook"], entityId: item.id }}
      />
    </>
  );
}

function StatePanel({ webhook, onRotated }: { webhook: Webhook; onRotated: (made: WebhookWithSecret) => void }) {
  const [rotating, setRotating] = useState(false);
  return (
    <Panel
      title="State"
      actions={
        <Button icon="key" onClick={() => setRotating(true)}>
          Rotate the secret
        </Button>
      }
    >
      {webhook.disabledReason !== null && (
        <Notice kind="warn" title="The service has disabled this webhook">
          {webhook.disabledReason} Correct the receiver, then enable the webhook below.
        </Notice>
      )}
      <Facts
        facts={[
          { label: "State", value: <WebhookStatus {...webhook} /> },
          { label: "Created by", value: webhook.createdBy },
          { label: "Created", value: <Time at={webhook.createdAt} /> },
        ]}
      />
      {rotating && (
        <RotateDialog
          webhook={webhook}
          onClose={() => setRotating(false)}
          onRotated={(made) => {
            setRotating(false);
            onRotated(made);
          }}
        />
      )}
    </Panel>
  );
}
