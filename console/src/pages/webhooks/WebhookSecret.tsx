import type { WebhookWithSecret } from "@/api/webhooks.ts";
import { Secret } from "@/pages/keys/Secret.tsx";

interface Props {
  webhook: WebhookWithSecret;
  onDone: () => void;
}

/** The new secret of a webhook, shown once. */
export function WebhookSecret({ webhook, onDone }: Props) {
  return (
    <Secret
      title="Secret of the webhook"
      secret={webhook.secret}
      advice="The receiver verifies messages with it. Store it there as a password, and rotate it if others may have seen it."
      facts={[{ label: "URL", value: webhook.url }]}
      onDone={onDone}
    />
  );
}
