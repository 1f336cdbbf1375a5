import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Attempts } from "@/api/attempts.ts";
import { ApiError, api, isOutdated } from "@/api/index.ts";
import { type ItemChange, type StoredItem, storeItem } from "@/api/items.ts";
import type { Conflict } from "@/components/ConflictBanner.tsx";
import { isSame } from "@/components/diff.ts";
import { useInvalidFocus } from "@/components/useInvalidFocus.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { type FieldMessages, findFieldMessage } from "./fieldErrors.ts";
import { isEqual, mergeDrafts } from "./merge.ts";

/** The rules of a form for one kind of item. */
export interface FormRules<Item extends StoredItem, Draft extends object> {
  /** The kind of item: "connection". */
  noun: string;
  /** Labels of the draft's fields. */
  labels: Record<keyof Draft & string, string>;
  /** Address of the item in the API. */
  path: (draft: Draft) => string;
  toDraft: (item: Item) => Draft;
  toBody: (draft: Draft) => object;
  /** Parses replies; without it, whole numbers beyond 2^53 are rounded. */
  parse?: (text: string) => unknown;
  /** Checks the draft as the service does; names of fields are the service's. */
  check: (draft: Draft, isNew: boolean) => FieldMessages;
  /** Field for the message that the key of a new item is in use; undefined if items cannot be created. */
  keyField?: string;
  /** Stores a new item whose key the service chooses; without it, a new item is stored at `path`. */
  create?: (draft: Draft) => Promise<Item>;
  /** Tells whether a removed item can be created again. */
  canRecreate?: boolean;
  /** Error code of a change of an item that was removed for good; without it, a removal is found by a reload. */
  removedCode?: string;
}

/** State and actions of a form for one item. */
export interface ItemForm<Item extends StoredItem, Draft extends object> {
  rules: FormRules<Item, Draft>;
  draft: Draft;
  /** The version that the form began with; null for a new item. */
  stored: Item | null;
  /** The stored version as a draft. */
  base: Draft;
  isNew: boolean;
  hasChanges: boolean;
  busy: boolean;
  /** Error of the latest attempt, without conflicts. */
  error: unknown;
  conflict: Conflict | undefined;
  element: RefObject<HTMLFormElement | null>;
  change: (fields: Partial<Draft>) => void;
  /** Returns the message for an invalid field. */
  message: (field: string) => string | undefined;
  submit: (event: Event) => void;
  reload: () => void;
  discard: () => void;
}

interface Base<Item, Draft> {
  stored: Item | null;
  draft: Draft;
}

/**
 * Holds the form of an item, and stores it on condition that nobody changed it meanwhile.
 * @param stored the current version; null for a new item
 * @param initial the draft of a new item
 * @param onSaved called with the stored item
 * @param onReloaded called with the current version after a conflict; null if the item was removed
 */
export function useItemForm<Item extends StoredItem, Draft extends object>(
  rules: FormRules<Item, Draft>,
  stored: Item | null,
  initial: Draft,
  onSaved: (item: Item, isNew: boolean) => void,
  onReloaded?: (item: Item | null) => void,
): ItemForm<Item, Draft> {
  const start: Base<Item, Draft> = { stored, draft: stored ? rules.toDraft(stored) : initial };
  const [base, setBase] = useState(start);
  const [draft, setDraft] = useState(start.draft);
  const [invalid, setInvalid] = useState<FieldMessages>({});
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [conflict, setConflict] = useState<Conflict>();
  const [saved, setSaved] = useState<{ item: Item; isNew: boolean }>();
  const [attempts] = useState(() => new Attempts());
  const hasChanges = !isEqual(draft, base.draft);
  const isNew = base.stored === null;
  const { element, focusInvalid } = useInvalidFocus<HTMLFormElement>();
  // A reply arrives later than the rendering that sent the request; the user may have typed meanwhile.
  const current = useRef(draft);
  current.current = draft;
  useUnsavedWarning(hasChanges);
  // Before the browser paints, because a user who sees the item as saved may already open another page.
  useLayoutEffect(() => {
    if (saved) {
      onSaved(saved.item, saved.isNew);
    }
  }, [saved]);
  /** Shows a stored version with the fields that the user changed after `from`. */
  const rebase = (item: Item, from: Draft) => {
    const theirs = rules.toDraft(item);
    const merged = mergeDrafts(from, current.current, theirs);
    setBase({ stored: item, draft: theirs });
    setDraft(merged.draft);
    return merged.both;
  };
  useLayoutEffect(() => {
    if (stored && stored.etag !== base.stored?.etag) {
      rebase(stored, base.draft);
    }
  }, [stored?.etag]);
  const showRemoval = () => {
    setBase({ ...base, stored: rules.canRecreate ? null : base.stored });
    setConflict({ state: "removed", canCreate: rules.canRecreate === true });
    onReloaded?.(null);
  };
  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
    focusInvalid();
  };
  /** Shows a conflict with another person's change; throws other errors again. */
  const showConflict = (failure: unknown) => {
    if (!isNew && failure instanceof ApiError && failure.code === rules.removedCode) {
      showRemoval();
    } else if (!isOutdated(failure)) {
      throw failure;
    } else if (isNew && rules.keyField) {
      setInvalid({ [rules.keyField]: explainUsedKey(rules.noun, failure.isPossiblyOwn) });
    } else {
      setConflict({ state: "detected", isPossiblyOwn: failure.isPossiblyOwn });
    }
  };
  const store = async () => {
    try {
      const item =
        isNew && rules.create
          ? await rules.create(draft)
          : await storeDraft(rules, draft, base.stored?.etag ?? null, attempts);
      rebase(item, draft);
      setConflict(undefined);
      setSaved({ item, isNew });
    } catch (failure) {
      showConflict(failure);
    }
  };
  const load = async () => {
    try {
      const item = await api.get<Item & Partial<ItemChange>>(rules.path(draft), { parse: rules.parse });
      if (item.etag === base.stored?.etag) {
        setConflict({ state: "delayed", isPossiblyOwn: attempts.isUncertain });
        return;
      }
      const both = rebase(item, base.draft).map((field) => rules.labels[field]);
      setConflict({ state: "merged", by: item.editedBy ?? null, at: item.updatedAt ?? null, both });
      onReloaded?.(item);
    } catch (failure) {
      if (!(failure instanceof ApiError && failure.status === 404)) {
        throw failure;
      }
      showRemoval();
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const found = rules.check(draft, isNew);
    setInvalid(found);
    setError(undefined);
    if (Object.values(found).some(Boolean)) {
      focusInvalid();
    } else if (!busy) {
      void attempt(store);
    }
  };
  return {
    rules,
    draft,
    stored: base.stored,
    base: base.draft,
    isNew,
    hasChanges,
    busy,
    error,
    conflict,
    element,
    change: (fields) => setDraft((before) => ({ ...before, ...fields })),
    message: (field) =>
      invalid[field] ?? (error instanceof ApiError ? findFieldMessage(error.errors, field) : undefined),
    submit,
    reload: () => void attempt(load),
    discard: () => {
      setDraft(base.draft);
      setInvalid({});
      setError(undefined);
      setConflict(undefined);
    },
  };
}

/**
 * Stores a draft, and returns the item. After a lost reply, an item that is stored as typed is the result of an earlier
 * attempt.
 * @throws ApiError on a conflict: `isOutdated`
 */
function storeDraft<Item extends StoredItem, Draft extends object>(
  rules: FormRules<Item, Draft>,
  draft: Draft,
  etag: string | null,
  attempts: Attempts,
): Promise<Item> {
  const [path, body] = [rules.path(draft), rules.toBody(draft)];
  return attempts.run(
    () => storeItem<Item>(api, path, body, etag, rules.parse),
    async () => {
      const item = await api.get<Item>(path, { parse: rules.parse });
      return isSame(rules.toBody(rules.toDraft(item)), body) ? item : undefined;
    },
  );
}

/** Explains that a new item cannot be stored, because its key is in use. */
function explainUsedKey(noun: string, isPossiblyOwn: boolean): string {
  return isPossiblyOwn
    ? `exists already, possibly from your earlier attempt; look at that ${noun} before you enter a different value`
    : `belongs to another ${noun}; enter a different value, or change that ${noun} first`;
}
