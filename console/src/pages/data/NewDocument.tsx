import { useState } from "preact/hooks";
import { Attempts } from "@/api/attempts.ts";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { ApiError } from "@/api/index.ts";
import type { Table } from "@/api/tables.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { TextArea } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useWork } from "@/components/useWork.ts";
import { readObject, writeObject } from "@/proof/jsonText.ts";
import { createDocument } from "./calls.ts";

interface Props {
  table: Table;
  onClose: () => void;
  /** Called after the creation, and at the end of a dialog whose document was possibly created. */
  onDone: () => void;
}

/** A dialog that creates a document from JSON. */
export function NewDocument({ table, onClose, onDone }: Props) {
  const [text, setText] = useState(() => writeObject(buildOutline(table.partitionKeyPath)));
  // For a document without an id, the service would create another id for each attempt.
  const [ownId] = useState(createIdempotencyKey);
  const [attempts] = useState(() => new Attempts());
  /** The texts that were possibly stored. */
  const [sent] = useState(() => new Set<string>());
  const { value, problem } = readObject(text);
  const { busy, error, run } = useWork();
  const save = () =>
    run(async () => {
      const document = { id: ownId, ...value };
      if (!attempts.isUncertain) {
        sent.clear();
      }
      sent.add(text);
      const isOnly = document.id === ownId && sent.size === 1;
      const findCreated = async ({ code }: ApiError) => (isOnly && code === "DOCUMENT_EXISTS" ? document : undefined);
      const made = await attempts.run(() => createDocument(table, document), findCreated);
      showToast(`The document ${String(made.id)} was created`);
      onDone();
    });
  const close = busy || error !== undefined ? onDone : onClose;
  return (
    <Dialog
      title={`New document in ${table.name}`}
      onClose={close}
      wide
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" busy={busy} disabled={problem !== undefined} onClick={() => void save()}>
            Create
          </Button>
        </>
      }
    >
      <TextArea
        label="JSON"
        value={text}
        rows={14}
        mono
        error={problem}
        hint={`${table.partitionKeyPath} is the partition key; a document without an id gets a random one`}
        onInput={setText}
      />
      {error !== undefined && (
        <ErrorNotice error={error}>
          {error instanceof ApiError && error.isPossiblyOwn && <p>It is possibly from your earlier attempt.</p>}
        </ErrorNotice>
      )}
    </Dialog>
  );
}

/** Returns a document with an empty partition key. */
function buildOutline(path: string): Record<string, unknown> {
  const names = path.split("/").slice(1);
  const nested = names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), "");
  return { id: "", ...(nested as Record<string, unknown>) };
}
