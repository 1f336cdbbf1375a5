import { createIdempotencyKey, needsNewKey } from "@/api/idempotency.ts";
import { api } from "@/api/index.ts";
import { rotateSecret, type Webhook, type WebhookWithSecret } from "@/api/webhooks.ts";
import { ConfirmDialog } from "@/components/ConfirmDialog.tsx";

interface Props {
  webhook: Webhook;
  onClose: () => void;
  onRotated: (made: WebhookWithSecret) => void;
}

/**
 * Keys of rotations whose reply was lost, by the id of the webhook. They outlast the dialog, because a second rotation
 * would end the secret of the receiver at once: only the newest two secrets sign.
 */
const unansweredKeys = new Map<string, string>();

/** Creates a new secret after a confirmation; a repetition after a lost reply returns the same secret. */
export function RotateDialog({ webhook, onClose, onRotated }: Props) {
  return (
    <ConfirmDialog
      title="Rotate the secret?"
      label="Create a new secret"
      danger={false}
      onClose={onClose}
      onConfirm={async () => onRotated(await rotate(webhook.id))}
    >
      <p>
        For 24 hours each message carries two signatures: one made with the new secret, one with the current secret.
        After that, only the new secret is used.
      </p>
    </ConfirmDialog>
  );
}

async function rotate(id: string): Promise<WebhookWithSecret> {
  const key = unansweredKeys.get(id) ?? createIdempotencyKey();
  unansweredKeys.set(id, key);
  try {
    const made = await rotateSecret(api, id, key);
    unansweredKeys.delete(id);
    return made;
  } catch (error) {
    if (needsNewKey(error)) {
      unansweredKeys.delete(id);
    }
    throw error;
  }
}
