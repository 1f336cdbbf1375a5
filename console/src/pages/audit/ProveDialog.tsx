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

/** A dialog that proves a record in the browser against the service's signed checkpoint. */
export function ProveDialog({ chain, record, onClose }: Props) {
  const workspace = useIdentity().workspace ?? "";
  const [key, setKey] = useState("");
  const [note, setNote] = useState("");
  const [inputs, setInputs] = useState({ key: "", note: "" });
  const [run, setRun] = useState(BEGUN);
  useEffect(() => {
    const abort = new AbortController();
    const change = (of: (before: Run) => Run) => abort.signal.aborted || setRun(of);
    const told = (step: Step) => change((before) => ({ ...before, steps: [...before.steps, step] }));
    proveCurrent({ ...chain, workspace }, record, inputs, told, abort.signal).then(
      (proof) => change((before) => ({ ...before, proof })),
      (error: unknown) => isAbort(error) || change((before) => ({ ...before, error })),
    );
    return () => abort.abort();
  }, [inputs]);
  const isCurrent = inputs.key === key.trim() && inputs.note === note.trim();
  const busy = isCurrent && run.proof === undefined && run.error === undefined;
  const again = () => {
    setRun(BEGUN);
    setInputs({ key: key.trim(), note: note.trim() });
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
        This browser computes everything below. It fetches the record, the verifier key, the newest signed checkpoint
        and the path between them from the service, and checks each of them.
      </p>
      {isCurrent ? (
        <>
          <ProofSteps steps={run.steps} busy={busy} />
          {run.error !== undefined && <ErrorNotice error={run.error} onRetry={again} />}
          {run.proof && <Outcome proof={run.proof} />}
        </>
      ) : (
        <Notice>Your copies below changed. Prove again to check against them.</Notice>
      )}
      <details class={css.own}>
        <summary>Check against your own copies</summary>
        <TextArea
          label="Verifier key"
          value={key}
          onInput={setKey}
          rows={3}
          mono
          hint="One line, name+id+key, from an earlier download of /.well-known/oi-checkpoint-key."
        />
        <TextArea
          label="Earlier checkpoint"
          value={note}
          onInput={setNote}
          rows={6}
          mono
          hint="A signed note of this chain. The newest checkpoint must contain all its records. Then prove again."
        />
      </details>
    </Dialog>
  );
}

/** Proves the current record of the service, not the copy of a list. */
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
    throw new Error(`The service returns ${stored ? `record ${stored.RecordID}` : "nothing"} instead of this record.`);
  }
  const note = own.note ? `${own.note}\n` : undefined;
  const kept = { shown: record, key: own.key || undefined, note, seen: recallNote(chain) };
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
        The signed chain contains the record with exactly this content.
      </Notice>
    );
  }
  if (proof.outcome === "open") {
    return (
      <Notice kind="warn" title="Undecided">
        No check failed, but one is undecided; its step above says why. If no signed checkpoint covers the record yet,
        try again in a minute.
      </Notice>
    );
  }
  return (
    <Notice kind="bad" title="Not proven">
      The record, the chain or the checkpoint was changed. Verify the chain to find the break, and preserve the store
      for an investigation.
    </Notice>
  );
}
