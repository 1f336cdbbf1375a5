import { api } from "@/api/index.ts";
import { type Attempt, type Delivery, retryDelivery } from "@/api/webhooks.ts";
import { Status } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Facts } from "@/components/Facts.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { showToast } from "@/components/toasts.ts";
import { useWork } from "@/components/useWork.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatCount } from "@/format.ts";
import { DeliveryState } from "./Deliveries.tsx";
import css from "./Webhooks.module.css";

interface Props {
  delivery: Delivery;
  /** False for a disabled webhook. */
  canRetry: boolean;
  onClose: () => void;
  onRetried: () => void;
}

/** One delivery: its event, and its attempts with the replies. */
export function DeliveryDialog({ delivery, canRetry, onClose, onRetried }: Props) {
  const { busy, error, run } = useWork();
  const retry = async () => {
    await retryDelivery(api, delivery);
    showToast("The delivery is sent again");
    onRetried();
  };
  return (
    <Dialog
      title={delivery.eventType}
      onClose={onClose}
      wide
      actions={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button kind="primary" icon="refresh" busy={busy} disabled={!canRetry} onClick={() => void run(retry)}>
            Send again
          </Button>
        </>
      }
    >
      {error !== undefined && <ErrorNotice error={error} />}
      <Facts
        facts={[
          { label: "Status", value: <DeliveryState {...delivery} /> },
          { label: "ID (webhook-id)", value: <code>{delivery.id}</code> },
          { label: "Created", value: <Time at={delivery.createdAt} precise /> },
          { label: "Next attempt", value: <Time at={delivery.nextAttemptAt} /> },
        ]}
      />
      <h3>Event</h3>
      <CodeBlock code={JSON.stringify(delivery.event, null, 2)} label="Event of the delivery" />
      <h3>Attempts</h3>
      {delivery.attempts.length === 0 ? (
        <p class={css.soft}>Not sent yet.</p>
      ) : (
        <ol class={css.attempts}>
          {delivery.attempts.toReversed().map((attempt) => (
            <AttemptEntry key={attempt.at} attempt={attempt} />
          ))}
        </ol>
      )}
    </Dialog>
  );
}

function AttemptEntry({ attempt }: { attempt: Attempt }) {
  const { at, httpStatus, error, durationMs, reply } = attempt;
  return (
    <li>
      <div class={css.line}>
        <Time at={at} precise />
        <Status tone={error === null ? "good" : "bad"}>{httpStatus ?? "no reply"}</Status>
        <span class={css.soft}>{formatCount(durationMs)} ms</span>
      </div>
      {error !== null && (
        <div>
          <VisibleText text={error} />
        </div>
      )}
      {reply !== "" && <CodeBlock code={reply} label={`Start of the reply at ${at}`} />}
    </li>
  );
}
