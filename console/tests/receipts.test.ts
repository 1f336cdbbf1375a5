import { afterEach, expect, test, vi } from "vitest";
import { Client } from "../src/api/client.ts";
import { fetchReceipt } from "../src/api/receipts.ts";

const api = new Client({ token: () => "t0ken", workspace: () => "plant a", refused: vi.fn() });

afterEach(() => {
  vi.unstubAllGlobals();
});

test("a receipt is requested by RecordID and has the file name of the service", async () => {
  const sent = vi.fn((_address: string, _init: RequestInit) => Promise.resolve(new Response(Uint8Array.of(0xd2))));
  vi.stubGlobal("fetch", sent);
  const receipt = await fetchReceipt(api, { target: "DomainEvents", scopeKey: "line 1" }, 7);
  expect(sent.mock.calls[0]?.[0]).toBe(
    "/oi-api/provenance/receipt?target=DomainEvents&scopeKey=line+1&recordId=000000000007",
  );
  expect(receipt.name).toBe("DomainEvents-000000000007.receipt.cbor");
  expect(new Uint8Array(await receipt.content.arrayBuffer())).toEqual(Uint8Array.of(0xd2));
});
