import { useMemo, useState } from "preact/hooks";
import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { type FormRules, useItemForm } from "@/administration/useItemForm.ts";
import { createIdempotencyKey, needsNewKey } from "@/api/idempotency.ts";
import { api } from "@/api/index.ts";
import { createWebhook, type WebhookWithSecret } from "@/api/webhooks.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { VerificationSnippets } from "./VerificationSnippets.tsx";
import { WebhookFields } from "./WebhookFields.tsx";
import { WebhookSecret } from "./WebhookSecret.tsx";
import { NEW_WEBHOOK, toDefinition, WEBHOOK_FORM, type WebhookDraft } from "./webhookDraft.ts";

/** The form that adds a webhook, and then its secret. */
export function NewWebhook() {
  const [made, setMade] = useState<WebhookWithSecret>();
  const form = useItemForm(useCreatingRules(), null, NEW_WEBHOOK, setMade);
  if (made) {
    return (
      <Page title="Webhook added" description={made.url}>
        <WebhookSecret webhook={made} onDone={() => navigate(buildHref("webhooks", [made.id]))} />
        <VerificationSnippets url={made.url} />
      </Page>
    );
  }
  return (
    <Page title="Add webhook" description="Sends a signed request to an address when something happens.">
      <Panel>
        <ItemFormFrame form={form} editable createLabel="Add webhook" onCancel={() => navigate(buildHref("webhooks"))}>
          <WebhookFields form={form} />
        </ItemFormFrame>
      </Panel>
    </Page>
  );
}

/** Returns the rules of a form that creates a webhook; a repetition after a lost reply creates no second one. */
function useCreatingRules(): FormRules<WebhookWithSecret, WebhookDraft> {
  return useMemo(() => {
    let idempotencyKey = createIdempotencyKey();
    const create = async (draft: WebhookDraft) => {
      try {
        return await createWebhook(api, toDefinition(draft), idempotencyKey);
      } catch (error) {
        if (needsNewKey(error)) {
          idempotencyKey = createIdempotencyKey();
        }
        throw error;
      }
    };
    return { ...WEBHOOK_FORM, create };
  }, []);
}
