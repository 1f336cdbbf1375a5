import { useEffect, useState } from "preact/hooks";
import { api, isAbort } from "@/api/index.ts";
import { createProofSources, queryRecords } from "@/api/provenance.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { TextArea } from "@/components/Field.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import type { ChainName } from "@/proof/chains.ts";
import { type Chain, type Proof, proveRecord } from "@/proof/recordProof.ts";
import { recallNote, rememberNote } from "@/proof/rememberedNotes.ts";
import type { Step } from "@/proof/steps.ts";
import { useIdentity } from "@/session/hooks.ts";
import { ProofSteps } from "./ProofSteps.tsx";
import css from "./Prove.module.css";
import type { RecordView } from "./recordView.ts";

interface Props {
  chain: ChainName;
  record: RecordView;
  onClose: () => void;
}

interface Run {
  steps: readonly Step[];
  proof: Proof | undefined;
  error: unknown;
}

const BEGUN: Run = { steps: [], proof: undefined, error: undefined };

/** Proves a record in the browser, step by step, against the service's signed checkpoint. */
export function ProveDialog({ chain, record, onClose }: Props) {
  const workspace = useIdentity().workspace ?? "";
  const [key, setKey] = useState("");
  const [note, setNote] = useState("");
  const [turn, setTurn] = useState(0);
  const [run, setRun] = useState(BEGUN);
  useEffect(() => {
    const abort = new AbortController();
    const change = (of: (before: Run) => Run) => abort.signal.aborted || setRun(of);
    const told = (step: Step) => change((before) => ({ ...before, steps: [...before.steps, step] }));
    proveCurrent({ ...chain, workspace }, record, { key: key.trim(), note: note.trim() }, told, abort.signal).then(
      (proof) => change((before) => ({ ...before, proof })),
      (error: unknown) => isAbort(error) || change((before) => ({ ...before, error })),
    );
    return () => abort.abort();
  }, [turn]);
  const busy = run.proof === undefined && run.error === undefined;
  const again = () => {
    setRun(BEGUN);
    setTurn(turn + 1);
  };
  return (
    <Dialog
      title={`Proof of record ${record.id}`}
      wide
      onClose={onClose}
      actions={
        <>
          <Button icon="refresh" busy={busy} onClick={again}>
            Prove again
          </Button>
          <Button kind="primary" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <p class={css.lead}>
        Everything below is computed in this browser. The service is asked for the record, its verifier key, its newest
        signed checkpoint and the path between them, and believed in none of it.
      </p>
      <ProofSteps steps={run.steps} busy={busy} />
      {run.error !== undefined && <ErrorNotice error={run.error} onRetry={again} />}
      {run.proof && <Outcome proof={run.proof} />}
      <details class={css.own}>
        <summary>Check against what you kept yourself</summary>
        <TextArea
          label="Verifier key"
          value={key}
          onInput={setKey}
          rows={3}
          mono
          hint="One line, name+id+key, as /.well-known/oi-checkpoint-key gave it when you fetched it."
        />
        <TextArea
          label="Earlier checkpoint"
          value={note}
          onInput={setNote}
          rows={6}
          mono
          hint="A signed note of this chain. The newest checkpoint must contain all of it. Then prove again."
        />
      </details>
    </Dialog>
  );
}

/** Proves what the service gives now, not what a list has shown since it was read. */
async function proveCurrent(
  chain: Chain & ChainName,
  { record, sequence }: RecordView,
  own: { key: string; note: string },
  told: (step: Step) => void,
  signal: AbortSignal,
): Promise<Proof> {
  const window = { fromSequence: sequence, toSequence: sequence, limit: 1 };
  const [stored] = (await queryRecords(api, chain, window, signal)).records;
  if (!stored || stored.RecordID !== record.RecordID) {
    throw new Error(`The service gives ${stored ? `record ${stored.RecordID}` : "nothing"} in place of this record.`);
  }
  const kept = { shown: record, key: own.key || undefined, note: own.note ? `${own.note}\n` : recallNote(chain) };
  const proof = await proveRecord(stored, chain, createProofSources(api, chain, signal), kept, told);
  if (proof.outcome === "holds" && proof.note !== null) {
    rememberNote(chain, proof.note);
  }
  return proof;
}

function Outcome({ proof }: { proof: Proof }) {
  if (proof.outcome === "holds") {
    return (
      <Notice kind="good" title="Proven">
        The record stands in the chain that the service signed, with exactly this content.
      </Notice>
    );
  }
  if (proof.outcome === "open") {
    return (
      <Notice kind="warn" title="Not provable yet">
        Nothing speaks against the record, but no signed checkpoint covers it. Prove it again in a minute.
      </Notice>
    );
  }
  return (
    <Notice kind="bad" title="Not proven">
      The record, the chain or the checkpoint was changed. Verify the chain to see where it is broken, and keep the
      store as it is for whoever looks into it.
    </Notice>
  );
}
