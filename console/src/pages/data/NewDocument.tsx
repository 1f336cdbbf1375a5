import { useState } from "preact/hooks";
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
  onDone: () => void;
}

/** A dialog that creates a document from JSON. */
export function NewDocument({ table, onClose, onDone }: Props) {
  const [text, setText] = useState(() => writeObject(buildOutline(table.partitionKeyPath)));
  const { value, problem } = readObject(text);
  const { busy, error, run } = useWork();
  const save = () =>
    run(async () => {
      const made = await createDocument(table, { ...value });
      showToast(`The document ${String(made.id)} was created`);
      onDone();
    });
  return (
    <Dialog
      title={`New document in ${table.name}`}
      onClose={onClose}
      wide
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
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
        hint={`${table.partitionKeyPath} is the partition key; the service creates a missing id`}
        onInput={setText}
      />
      {error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  );
}

/** Returns a document with an empty partition key. */
function buildOutline(path: string): Record<string, unknown> {
  const names = path.split("/").slice(1);
  const nested = names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), "");
  return { id: "", ...(nested as Record<string, unknown>) };
}
