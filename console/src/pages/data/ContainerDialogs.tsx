import { useState } from "preact/hooks";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { createContainer, removeContainer } from "./calls.ts";
import css from "./Data.module.css";
import { useWork } from "./useWork.ts";

const CLASSES = [
  { value: "operational", label: "operational: changes with the work" },
  { value: "reference", label: "reference: looked up, seldom changed" },
] as const;

interface Props {
  database: string;
  onClose: () => void;
  /** Called once something has changed. */
  onDone: () => void;
}

/** Asks for a container's name, partition key and data class, and makes it. */
export function NewContainer({ database, onClose, onDone }: Props) {
  const [name, setName] = useState("");
  const [partitionKeyPath, setPath] = useState("/id");
  const [dataClass, setClass] = useState<"operational" | "reference">("operational");
  const { busy, error, run } = useWork();
  const of = (field: string) => (error instanceof ApiError ? error.fieldMessage(field) : undefined);
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await createContainer(database, { name, partitionKeyPath, dataClass });
      showToast(`The container ${name} was made`);
      onDone();
      onClose();
    });
  };
  return (
    <Dialog
      title={`New container in ${database}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} disabled={name === ""} onClick={submit}>
            Create
          </Button>
        </>
      }
    >
      <form class={css.form} onSubmit={submit}>
        <Field label="Name" value={name} error={of("name")} mono onInput={setName} />
        <Field
          label="Partition key path"
          value={partitionKeyPath}
          error={of("partitionKeyPath")}
          hint="For instance /line, or /site/line; it cannot change later"
          mono
          onInput={setPath}
        />
        <Select
          label="Data class"
          value={dataClass}
          options={CLASSES}
          error={of("dataClass")}
          hint="Evidence belongs in the audit log, where nothing is replaced or deleted"
          onChange={setClass}
        />
        {error !== undefined && <ErrorNotice error={error} />}
      </form>
    </Dialog>
  );
}

/** Removes the record of a container, or says why the service does not. */
export function RemoveContainer({ database, name, onClose, onDone }: Props & { name: string }) {
  const { busy, error, run } = useWork();
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
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{error === undefined ? "Cancel" : "Close"}</Button>
          <Button kind="danger" busy={busy} onClick={() => void remove()}>
            Remove the record
          </Button>
        </>
      }
    >
      <p>
        Only the record of a container that does not exist in the account is removed here. A container with its
        documents is deleted in the account itself, so that nothing is lost by this page.
      </p>
      {error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  );
}
