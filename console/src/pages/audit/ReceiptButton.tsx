import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { fetchNewestCheckpoint } from "@/api/provenance.ts";
import { fetchReceipt } from "@/api/receipts.ts";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { saveFile } from "@/components/saveFile.ts";
import { useResource } from "@/components/useResource.ts";
import type { ChainName } from "@/proof/chains.ts";

/** Saves the receipt of a record; nothing is shown while no checkpoint covers the record. */
export function ReceiptButton({ chain, sequence }: { chain: ChainName; sequence: number }) {
  const { target, scopeKey } = chain;
  const newest = useResource((signal) => fetchNewestCheckpoint(api, chain, signal), [target, scopeKey, sequence]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  if (!newest.data || newest.data.size < sequence) {
    return null;
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
