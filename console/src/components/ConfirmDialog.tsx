import type { ComponentChildren } from "preact";
import { Button } from "./Button.tsx";
import { Dialog } from "./Dialog.tsx";
import { ErrorNotice } from "./Notice.tsx";
import { useWork } from "./useWork.ts";

interface Props {
  /** The question. */
  title: string;
  /** Label of the button that confirms. */
  label: string;
  /** False for an action that can be undone. */
  danger?: boolean;
  /** @param failed whether the action was attempted and failed, so that the page may be outdated */
  onClose: (failed: boolean) => void;
  onConfirm: () => Promise<void>;
  /** The consequences. */
  children: ComponentChildren;
  /** Renders the error of the action; the default is its message. */
  renderError?: (error: unknown) => ComponentChildren;
  /** Tells whether a repetition after this error is useless. */
  isFinal?: (error: unknown) => boolean;
}

/** Asks for confirmation of an action, runs it, and shows its error. */
export function ConfirmDialog(props: Props) {
  const { title, label, danger = true, onClose, onConfirm, children, renderError, isFinal } = props;
  const { busy, error, run } = useWork();
  const failed = error !== undefined;
  const close = () => onClose(failed);
  return (
    <Dialog
      title={title}
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button
            kind={danger ? "danger" : "primary"}
            busy={busy}
            disabled={failed && isFinal?.(error) === true}
            onClick={(event) => {
              // The second click of a double click is not a confirmation: the first one possibly opened this dialog.
              if (event.detail < 2) {
                void run(onConfirm);
              }
            }}
          >
            {label}
          </Button>
        </>
      }
    >
      {children}
      {failed && (renderError ? renderError(error) : <ErrorNotice error={error} />)}
    </Dialog>
  );
}
