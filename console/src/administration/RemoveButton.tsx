import type { ComponentChildren } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { Attempts } from "@/api/attempts.ts";
import { api, isOutdated } from "@/api/index.ts";
import { removeItem } from "@/api/items.ts";
import { Button } from "@/components/Button.tsx";
import { ConfirmDialog } from "@/components/ConfirmDialog.tsx";
import { showToast } from "@/components/toasts.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { RefusalNotice } from "./RefusalNotice.tsx";

interface Props {
  /** The kind of item: "connection". */
  noun: string;
  name: string;
  /** Address of the item in the API, and the version that the user saw. */
  path: string;
  etag: string;
  /** Page that lists such items, shown after the removal. */
  page: string;
  /** Shows the current version after a conflict. */
  onReload: () => void;
  /** The consequences. */
  children: ComponentChildren;
}

/** A button that removes an item after a confirmation. */
export function RemoveButton({ noun, name, path, etag, page, onReload, children }: Props) {
  const [asking, setAsking] = useState(false);
  const [attempts] = useState(() => new Attempts());
  const [removed, setRemoved] = useState(false);
  // An effect, because a late reply must not lead a user away from another page.
  useLayoutEffect(() => {
    if (removed) {
      navigate(buildHref(page));
    }
  }, [removed]);
  const close = () => setAsking(false);
  const remove = async () => {
    await removeItem(api, path, etag, attempts);
    showToast(`“${name}” is removed`);
    setRemoved(true);
  };
  const reload = () => {
    close();
    onReload();
  };
  return (
    <>
      <Button kind="danger" onClick={() => setAsking(true)}>
        Remove
      </Button>
      {asking && (
        <ConfirmDialog
          title={`Remove “${name}”?`}
          label={`Remove the ${noun}`}
          onClose={close}
          onConfirm={remove}
          renderError={(error) => <RefusalNotice error={error} onReload={reload} />}
          isFinal={isOutdated}
        >
          {children}
        </ConfirmDialog>
      )}
    </>
  );
}
