import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import {
  type Delivery,
  type DeliveryPage,
  type DeliveryStatus,
  fetchDeliveries,
  sendTest,
  type Webhook,
} from "@/api/webhooks.ts";
import { Status, type Tone } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Select } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { Pager } from "@/components/Pager.tsx";
import { showToast } from "@/components/toasts.ts";
import { useCursors } from "@/components/useCursors.ts";
import { type Turn, usePolling } from "@/components/usePolling.ts";
import { useWork } from "@/components/useWork.ts";
import { Panel } from "@/shell/Page.tsx";
import { DeliveryDialog } from "./DeliveryDialog.tsx";

const LIMIT = 50;
const SOON = 2_000;
const LATER = 15_000;
const TONES: Record<DeliveryStatus, Tone> = { pending: "warn", delivered: "good", failed: "bad" };
const STATUSES = [
  { value: "", label: "all deliveries" },
  { value: "pending", label: "pending" },
  { value: "delivered", label: "delivered" },
  { value: "failed", label: "failed" },
];

const COLUMNS: readonly Column<Delivery>[] = [
  {
    key: "status",
    title: "Status",
    width: 110,
    value: ({ status }) => status,
    render: (delivery) => <DeliveryState {...delivery} />,
  },
  { key: "type", title: "Event", type: "code", value: ({ eventType }) => eventType },
  { key: "created", title: "Created", type: "time", width: 164, value: ({ createdAt }) => createdAt },
  { key: "attempts", title: "Attempts", type: "number", width: 90, value: ({ attempts }) => attempts.length },
  { key: "result", title: "Latest result", value: describeResult },
  { key: "next", title: "Next attempt", type: "time", width: 164, value: ({ nextAttemptAt }) => nextAttemptAt },
];

/** The state of a delivery. */
export function DeliveryState({ status }: Pick<Delivery, "status">) {
  return <Status tone={TONES[status]}>{status}</Status>;
}

/** Returns the result of the latest attempt: a status, or the reason of the failure. */
export function describeResult({ attempts }: Pick<Delivery, "attempts">): string | null {
  const latest = attempts.at(-1);
  return latest === undefined ? null : (latest.error ?? `status ${latest.httpStatus}`);
}

/** Returns the milliseconds until the list is read again: soon while an attempt is due. */
export function chooseListPause({ data, failed }: Turn<DeliveryPage>, now: number = Date.now()): number {
  const soon = data?.deliveries.some(({ nextAttemptAt }) => nextAttemptAt && Date.parse(nextAttemptAt) <= now + LATER);
  return soon && !failed ? SOON : LATER;
}

/** The log of the deliveries of a webhook; each row opens its delivery. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const [status, setStatus] = useState("");
  return (
    <DeliveryList
      key={status}
      webhook={webhook}
      status={status}
      choice={<Select label="Deliveries to show" hideLabel value={status} options={STATUSES} onChange={setStatus} />}
    />
  );
}

function DeliveryList({ webhook, status, choice }: { webhook: Webhook; status: string; choice: ComponentChildren }) {
  const { cursor, page, toNext, toPrevious } = useCursors();
  const [opened, setOpened] = useState<Delivery>();
  const { busy, error, run } = useWork();
  const deliveries = usePolling(
    async (signal) => ({
      ...(await fetchDeliveries(api, webhook.id, { status, limit: LIMIT, cursor }, signal)),
      page,
    }),
    chooseListPause,
    [cursor],
  );
  const test = async () => {
    await sendTest(api, webhook.id);
    showToast("The test event will be sent");
    deliveries.reload();
  };
  const newest = deliveries.data?.deliveries.find(({ id }) => id === opened?.id) ?? opened;
  return (
    <Panel
      title="Deliveries"
      actions={
        <>
          {choice}
          <Button kind="quiet" icon="refresh" label="Refresh" onClick={deliveries.reload} />
          <Button kind="primary" icon="send" busy={busy} disabled={!webhook.enabled} onClick={() => void run(test)}>
            Send a test event
          </Button>
        </>
      }
    >
      {error !== undefined && <ErrorNotice error={error} />}
      <Loaded resource={deliveries} rows={4}>
        {(shown) => (
          <>
            <DataTable
              label="Deliveries"
              columns={COLUMNS}
              rows={shown.deliveries}
              rowKey={({ id }) => id}
              onOpen={setOpened}
              height={360}
              empty={<Empty title="No deliveries">Send a test event to try the receiver.</Empty>}
            />
            {(shown.page > 1 || shown.cursor !== null) && (
              <Pager text={`Page ${shown.page}`} onPrevious={toPrevious} onNext={toNext(shown.cursor)} />
            )}
          </>
        )}
      </Loaded>
      {newest && (
        <DeliveryDialog
          delivery={newest}
          canRetry={webhook.enabled}
          onClose={() => setOpened(undefined)}
          onRetried={deliveries.reload}
        />
      )}
    </Panel>
  );
}
