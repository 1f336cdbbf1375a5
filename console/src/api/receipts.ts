import { type ChainName, toChainQuery } from "@/proof/chains.ts";
import { formatRecordId } from "@/proof/record.ts";
import { readBody } from "./body.ts";
import type { Client } from "./client.ts";

/** A receipt (RFC 9942) as a file. */
export interface ReceiptFile {
  name: string;
  content: Blob;
}

/** Returns the receipt of a record for the newest checkpoint; needs Workspace.Provenance.Read. */
export async function fetchReceipt(api: Client, chain: ChainName, sequence: number): Promise<ReceiptFile> {
  const recordId = formatRecordId(sequence);
  const options = { query: { ...toChainQuery(chain), recordId } };
  const reply = await api.fetch("GET", "/oi-api/provenance/receipt", undefined, options);
  const content = await readBody(reply, () => reply.blob());
  return { name: `${chain.target}-${recordId}.receipt.cbor`, content };
}
