import { useId, useState } from "preact/hooks";
import {
  type Complete,
  type Completion,
  type CompletionAction,
  type Completions,
  findCompletionAction,
} from "./completions.ts";

/** The open completions of a text area. */
export interface CompletionState {
  id: string;
  /** Undefined while none are open. */
  open: Completions | undefined;
  active: number;
  /** Handles a key; returns whether it belonged to the completions. */
  onKey: (event: KeyboardEvent) => boolean;
  /** Updates the completions after an input. */
  onInput: (area: HTMLTextAreaElement) => void;
  close: () => void;
  accept: (area: HTMLTextAreaElement, item: Completion) => void;
}

/** Offers completions while somebody types, and on Ctrl+Space. */
export function useCompletions(complete: Complete | undefined): CompletionState {
  const id = useId();
  const [open, setOpen] = useState<Completions>();
  const [active, setActive] = useState(0);
  const close = () => setOpen(undefined);
  const show = (area: HTMLTextAreaElement, always: boolean) => {
    const offset = area.selectionStart;
    const found = complete?.(area.value, offset);
    const typing = found !== undefined && found.from < offset;
    setActive(0);
    setOpen(found && found.items.length > 0 && (typing || always) ? found : undefined);
  };
  const accept = (area: HTMLTextAreaElement, item: Completion) => {
    if (open) {
      replaceWord(area, open.from, item);
    }
    close();
  };
  /** Returns false if the key also has its usual effect. */
  const perform = (action: CompletionAction, area: HTMLTextAreaElement, { from, items }: Completions): boolean => {
    const item = items[active];
    if (action.kind === "move") {
      setActive(action.to);
      return true;
    }
    if (action.kind === "accept" && item && !isComplete(area, from, item)) {
      accept(area, item);
      return true;
    }
    close();
    return action.kind === "close";
  };
  const onKey = (event: KeyboardEvent) => {
    const area = event.currentTarget as HTMLTextAreaElement;
    if (event.key === " " && event.ctrlKey) {
      show(area, true);
      return true;
    }
    const plain = !event.isComposing && !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    const action = open && plain ? findCompletionAction(event.key, active, open.items.length) : undefined;
    return open !== undefined && action !== undefined && perform(action, area, open);
  };
  return { id, open, active, onKey, onInput: (area) => show(area, false), close, accept };
}

/** Tells whether a completion is already there, so that Enter is a new line. */
function isComplete(area: HTMLTextAreaElement, from: number, item: Completion): boolean {
  return area.value.slice(from, area.selectionStart) === (item.insert ?? item.text);
}

/** Replaces the word before the caret, in a way that the browser can undo. */
function replaceWord(area: HTMLTextAreaElement, from: number, { text, insert = text }: Completion): void {
  const offset = area.selectionStart;
  const doubled = insert.endsWith("(") && area.value[offset] === "(";
  const wanted = doubled ? insert.slice(0, -1) : insert;
  area.focus();
  area.setSelectionRange(from, offset);
  if (!document.execCommand("insertText", false, wanted)) {
    area.setRangeText(wanted, from, offset, "end");
    area.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }
}
