import { useState } from "preact/hooks";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { api } from "@/api/index.ts";
import { rotateSecret, type Webhook, type WebhookWithSecret } from "@/api/webhooks.ts";
import { ConfirmDialog } from "@/components/ConfirmDialog.tsx";

interface Props {
  webhook: Webhook;
  onClose: () => void;
  onRotated: (made: WebhookWithSecret) => void;
}

/** Creates a new secret after a confirmation; a repetition after a lost reply returns the same secret. */
export function RotateDialog({ webhook, onClose, onRotated }: Props) {
  const [idempotencyKey] = useState(createIdempotencyKey);
  return (
    <ConfirmDialog
      title="Rotate the secret?"
      label="Create a new secret"
      danger={false}
      onClose={onClose}
      onConfirm={async () => onRotated(await rotateSecret(api, webhook.id, idempotencyKey))}
    >
      <p>
        For 24 hours each message carries two signatures: one made with the new secret, one with the current secret.
        After that, only the new secret is used.
      </p>
    </ConfirmDialog>
  );
}
