import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { fetchNewestCheckpoint, type SignedCheckpoint } from "@/api/provenance.ts";
import { fetchReceipt } from "@/api/receipts.ts";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { saveFile } from "@/components/saveFile.ts";
import { type Turn, usePolling } from "@/components/usePolling.ts";
import type { ChainName } from "@/proof/chains.ts";

const SOON_MS = 15_000;
/** A covered record stays covered, so that further checkpoints do not matter. */
const COVERED_MS = 86_400_000;

/** Saves the receipt of a record; the button appears when a checkpoint covers the record. */
export function ReceiptButton({ chain, sequence }: { chain: ChainName; sequence: number }) {
  const { target, scopeKey } = chain;
  const isCovered = (checkpoint: SignedCheckpoint | null | undefined) => !!checkpoint && checkpoint.size >= sequence;
  const newest = usePolling(
    (signal) => fetchNewestCheckpoint(api, chain, signal),
    ({ data }: Turn<SignedCheckpoint | null>) => (isCovered(data) ? COVERED_MS : SOON_MS),
    [target, scopeKey, sequence],
  );
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  if (!isCovered(newest.data)) {
    return newest.error === undefined ? null : (
      <ErrorNotice error={newest.error} onRetry={newest.reload}>
        The newest checkpoint could not be read, so that no receipt is offered.
      </ErrorNotice>
    );
  }
  const save = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const receipt = await fetchReceipt(api, chain, sequence);
      saveFile(receipt.content, receipt.name);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return (
    <>
      <Button icon="download" busy={busy} onClick={() => void save()}>
        Save the receipt
      </Button>
      {error !== undefined && <ErrorNotice error={error} onRetry={() => void save()} />}
    </>
  );
}
