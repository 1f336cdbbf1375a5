// The published test vectors, for tests: parsed here, since a module of JSON would lose properties named `__proto__`.

import { readFileSync } from "node:fs";
import type { JsonObject } from "@/proof/record.ts";

interface Vectors {
  readonly workspace: string;
  readonly target: string;
  readonly scopeKey: string;
  readonly genesis: string;
  readonly verifierKey: string;
  readonly records: readonly (JsonObject & { readonly Hash: string })[];
  readonly checkpoints: readonly { origin: string; size: number; rootHash: string; signedNote: string }[];
  readonly inclusion: readonly { sequence: number; size: number; hashes: readonly string[] }[];
  readonly growth: readonly { from: number; size: number; fromRoot: string; hashes: readonly string[] }[];
}

export const proofs = JSON.parse(
  readFileSync(`${import.meta.dirname}/../../../tests/vectors/proofs.json`, "utf8"),
) as Vectors;
