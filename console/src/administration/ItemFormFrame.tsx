import type { ComponentChildren } from "preact";
import type { StoredItem } from "@/api/items.ts";
import { Button } from "@/components/Button.tsx";
import { ConflictBanner } from "@/components/ConflictBanner.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import css from "./Administration.module.css";
import { RefusalNotice } from "./RefusalNotice.tsx";
import type { ItemForm } from "./useItemForm.ts";

interface Props<Item extends StoredItem, Draft extends object> {
  form: ItemForm<Item, Draft>;
  /** False shows the values without a way to change them. */
  editable: boolean;
  /** Label of the button for a new item. */
  createLabel: string;
  /** Closes the form of a new item. */
  onCancel?: () => void;
  children: ComponentChildren;
}

/** A form of one item: its fields, conflicts and errors, and the buttons. */
export function ItemFormFrame<Item extends StoredItem, Draft extends object>(props: Props<Item, Draft>) {
  const { form, editable, createLabel, onCancel, children } = props;
  const { conflict, error, isNew, hasChanges, rules } = form;
  const closed = conflict?.state === "removed" && !conflict.canCreate;
  return (
    <form ref={form.element} class={css.form} onSubmit={form.submit} noValidate>
      <fieldset class={css.plain} disabled={!editable}>
        {children}
      </fieldset>
      {conflict && (
        <ConflictBanner
          conflict={conflict}
          noun={rules.noun}
          busy={form.busy}
          hasChanges={hasChanges}
          onReload={form.reload}
          onDiscard={form.discard}
        >
          {conflict.state === "merged" && (
            <details>
              <summary>Your changes to the current version</summary>
              <JsonDiff before={rules.toBody(form.base)} after={rules.toBody(form.draft)} />
            </details>
          )}
        </ConflictBanner>
      )}
      {error !== undefined && <RefusalNotice error={error} />}
      {editable && (
        <div class={css.actions}>
          <Button kind="primary" type="submit" busy={form.busy} disabled={closed || (!isNew && !hasChanges)}>
            {isNew && !conflict ? createLabel : "Save"}
          </Button>
          {isNew && onCancel && <Button onClick={onCancel}>Cancel</Button>}
          {!isNew && hasChanges && <Button onClick={form.discard}>Discard changes</Button>}
        </div>
      )}
    </form>
  );
}
