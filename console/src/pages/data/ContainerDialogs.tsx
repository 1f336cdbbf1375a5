import { useState } from "preact/hooks";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useWork } from "@/components/useWork.ts";
import { createContainer, removeContainer } from "./calls.ts";
import css from "./Data.module.css";

const CLASSES = [
  { value: "operational", label: "operational: changes in daily work" },
  { value: "reference", label: "reference: rarely changes" },
] as const;

interface Props {
  database: string;
  onClose: () => void;
  /** Called after a change, and at the end of a dialog that possibly made one. */
  onDone: () => void;
}

/** A dialog that creates a container. */
export function NewContainer({ database, onClose, onDone }: Props) {
  const [name, setName] = useState("");
  const [partitionKeyPath, setPath] = useState("/id");
  const [dataClass, setClass] = useState<"operational" | "reference">("operational");
  // One key for each container: a retry after a lost reply creates it once; an edited container gets a new key.
  const [key, setKey] = useState(createIdempotencyKey);
  const { busy, error, run } = useWork();
  const of = (field: string) => (error instanceof ApiError ? error.fieldMessage(field) : undefined);
  const edit =
    <Value,>(set: (value: Value) => void) =>
    (value: Value) => {
      set(value);
      setKey(createIdempotencyKey());
    };
  const close = () => {
    onClose();
    if (busy || error !== undefined) {
      onDone();
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await createContainer(database, { name, partitionKeyPath, dataClass }, key);
      showToast(`The container ${name} was created`);
      onDone();
      onClose();
    });
  };
  return (
    <Dialog
      title={`New container in ${database}`}
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" busy={busy} disabled={name === ""} onClick={submit}>
            Create
          </Button>
        </>
      }
    >
      <form class={css.form} onSubmit={submit}>
        <Field label="Name" value={name} error={of("name")} mono onInput={edit(setName)} />
        <Field
          label="Partition key path"
          value={partitionKeyPath}
          error={of("partitionKeyPath")}
          hint="Such as /line or /site/line; it cannot be changed later"
          mono
          onInput={edit(setPath)}
        />
        <Select
          label="Data class"
          value={dataClass}
          options={CLASSES}
          error={of("dataClass")}
          hint="Use the audit log for evidence: its records cannot be replaced or deleted"
          onChange={edit(setClass)}
        />
        {error !== undefined && <ErrorNotice error={error} />}
      </form>
    </Dialog>
  );
}

/** A dialog that removes the record of a container, or shows why it cannot. */
export function RemoveContainer({ database, name, onClose, onDone }: Props & { name: string }) {
  const { busy, error, run } = useWork();
  const close = () => {
    onClose();
    if (busy || error !== undefined) {
      onDone();
    }
  };
  const remove = () =>
    run(async () => {
      await removeContainer(database, name);
      showToast(`The record of ${name} was removed`);
      onDone();
      onClose();
    });
  return (
    <Dialog
      title={`Remove ${name}?`}
      onClose={close}
      actions={
        <>
          <Button onClick={close}>{error === undefined ? "Cancel" : "Close"}</Button>
          <Button kind="danger" busy={busy} onClick={() => void remove()}>
            Remove the record
          </Button>
        </>
      }
    >
      <p>
        This removes only the workspace's record of the container. If the container still exists in the account, delete
        it there first.
      </p>
      {error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  );
}
