import { useEffect, useState } from "preact/hooks";
import { Attempts } from "@/api/attempts.ts";
import { isAbort, isOutdated } from "@/api/index.ts";
import type { Document, Table } from "@/api/tables.ts";
import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { ConfirmDialog } from "@/components/ConfirmDialog.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { isSame } from "@/components/diff.ts";
import { TextArea } from "@/components/Field.tsx";
import { Loading } from "@/components/Loading.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useWork } from "@/components/useWork.ts";
import { readObject, writeObject } from "@/proof/jsonText.ts";
import { deleteDocument, fetchDocument, replaceDocument, type StoredDocument } from "./calls.ts";
import css from "./Data.module.css";
import { type PartitionQuery, readPartition, toQuery } from "./partition.ts";

interface Props {
  table: Table;
  /** The document from the list. */
  listed: Document;
  /** Called if the listed version is outdated, or possibly outdated by an attempt whose reply is missing. */
  onOutdated: () => void;
  onClose: () => void;
  onDone: () => void;
}

/** A document as JSON, to read and, if the table permits it, edit or delete. */
export function DocumentDialog(props: Props) {
  const { table, listed, onClose } = props;
  const query = toQuery(readPartition(listed, table.partitionKeyPath));
  const id = String(listed.id);
  if (query === undefined) {
    return (
      <Dialog title={id} onClose={onClose} wide>
        <Notice title="This document has no partition key, so requests cannot address it." />
        <CodeBlock code={writeObject(listed)} label={`Document ${id}`} />
      </Dialog>
    );
  }
  return <OpenDocument {...props} id={id} query={query} />;
}

interface OpenedProps extends Props {
  id: string;
  query: PartitionQuery;
}

function OpenDocument({ table, id, query, listed, onOutdated, onClose, onDone }: OpenedProps) {
  const { found, text, setText, reload, error: unread } = useDocument(table, id, query, listed);
  const [deleting, setDeleting] = useState(false);
  const [attempts] = useState(() => new Attempts());
  const { busy, error, run, clear } = useWork();
  const { value, problem } = readObject(text);
  const [edits, deletes] = [table.verbs.has("replace"), table.verbs.has("delete")];
  const changed = found !== undefined && text !== writeObject(found.document);
  /** Returns the document if an earlier attempt, whose reply was lost, stored this text. */
  const findSaved = async () => {
    const now = await fetchDocument(table, id, query);
    return isSame(now.document, value) ? now : undefined;
  };
  const save = () =>
    run(async () => {
      const replace = () => replaceDocument(table, id, query, { ...value }, found?.etag ?? "");
      await attempts.run(replace, findSaved);
      showToast(`The document ${id} was saved`);
      onDone();
    });
  const drop = () =>
    run(async () => {
      await deleteDocument(table, id, query, found?.etag ?? "");
      showToast(`The document ${id} was deleted`);
      onDone();
    });
  const isConflict = isOutdated(error);
  useEffect(() => {
    if (isConflict) {
      onOutdated();
    }
  }, [isConflict]);
  const end = () => {
    if (busy || error !== undefined) {
      onOutdated();
    }
    onClose();
  };
  const actions = (close: () => void) => (
    <>
      {deletes && found && (
        <span class={css.left}>
          <Button kind="danger" disabled={busy} onClick={() => setDeleting(true)}>
            Delete
          </Button>
        </span>
      )}
      <Button onClick={close}>Close</Button>
      {edits && (
        <Button
          kind="primary"
          busy={busy && !deleting}
          disabled={!changed || problem !== undefined}
          onClick={() => void save()}
        >
          Save
        </Button>
      )}
    </>
  );
  return (
    <>
      <Dialog title={id} onClose={end} wide actions={actions}>
        {found === undefined && unread === undefined && <Loading rows={8} />}
        {unread !== undefined && <ErrorNotice error={unread} onRetry={() => reload(true)} />}
        {found && edits && (
          <TextArea
            label="JSON"
            value={text}
            rows={16}
            mono
            error={problem}
            hint={buildHint(table)}
            onInput={setText}
          />
        )}
        {found && !edits && <CodeBlock code={text} label={`Document ${id}`} />}
        <Refused
          error={error}
          reload={(theirs) => {
            clear();
            reload(theirs);
          }}
        />
      </Dialog>
      {deleting && (
        <ConfirmDialog
          title={`Delete ${id}?`}
          label={`Delete ${id} permanently`}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await drop();
            setDeleting(false);
          }}
        >
          <p>A deletion cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** The error of a write; after a conflict the reader chooses between the two versions. */
function Refused({ error, reload }: { error: unknown; reload: (theirs: boolean) => void }) {
  if (!isOutdated(error)) {
    return error === undefined ? null : <ErrorNotice error={error} />;
  }
  const title = error.isPossiblyOwn
    ? "The document changed meanwhile, possibly by your earlier attempt. This attempt saved nothing."
    : "Another user changed the document. Your version was not saved.";
  return (
    <Notice kind="warn" title={title}>
      <p>
        <code>{error.code}</code> · request <code>{error.requestId}</code>
      </p>
      <div class={css.choices}>
        <Button onClick={() => reload(true)}>Show the current version</Button>
        <Button onClick={() => reload(false)}>Keep my version and overwrite theirs</Button>
      </div>
    </Notice>
  );
}

function buildHint(table: Table): string {
  return table.verbs.has("read")
    ? `id and ${table.partitionKeyPath} cannot be changed`
    : "This table does not publish the operation “read one document”. Changes by other users cannot be detected";
}

/** Loads a document with its ETag, if the table publishes reads, and holds the edited text. */
function useDocument(table: Table, id: string, query: PartitionQuery, listed: Document) {
  const reads = table.verbs.has("read");
  const [found, setFound] = useState<StoredDocument | undefined>(reads ? undefined : { document: listed, etag: "" });
  const [text, setText] = useState(() => writeObject(listed));
  const [error, setError] = useState<unknown>();
  const load = async (theirs: boolean, signal?: AbortSignal) => {
    try {
      const now = await fetchDocument(table, id, query, signal);
      setFound(now);
      setError(undefined);
      if (theirs) {
        setText(writeObject(now.document));
      }
    } catch (failure) {
      if (!isAbort(failure)) {
        setError(failure);
      }
    }
  };
  useEffect(() => {
    const abort = new AbortController();
    if (reads) {
      void load(true, abort.signal);
    }
    return () => abort.abort();
  }, []);
  return { found, text, setText, error, reload: (theirs: boolean) => void load(theirs) };
}
