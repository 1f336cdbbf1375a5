// Confirmation before unsaved input is lost by a link, the browser's buttons, or closing the tab.
import { useLayoutEffect } from "preact/hooks";

const QUESTION = "Discard unsaved changes?";

/**
 * A form of a page; a dialog, which programs close before they leave its page; or the text of a page that survives
 * everything except a closed tab.
 */
export type HolderKind = "page" | "dialog" | "tab";

/** Forms on the page with unsaved input. */
const holders = new Map<object, HolderKind>();
/** The address that the reader has confirmed. */
let agreed: string | undefined;

/** Asks whether unsaved input may be discarded. */
export function confirmDiscard(): boolean {
  return window.confirm(QUESTION);
}

/** Tells whether navigation may proceed; asks the reader if input would be lost. */
export function confirmNavigation(hash: string): boolean {
  if (!holds("page", "dialog") || hash === agreed) {
    return true;
  }
  const yes = confirmDiscard();
  agreed = yes ? hash : undefined;
  return yes;
}

/** Like `confirmNavigation`, for a navigation by the program: an open dialog does not prevent it. */
export function confirmOwnNavigation(hash: string): boolean {
  if (holds("page")) {
    return confirmNavigation(hash);
  }
  agreed = hash;
  return true;
}

/** Tells whether signing out may proceed; asks the reader if input would be lost. */
export function confirmSignOut(): boolean {
  return holders.size === 0 || confirmDiscard();
}

function holds(...kinds: HolderKind[]): boolean {
  return [...holders.values()].some((kind) => kinds.includes(kind));
}

/** Warns before leaving while a form is unsaved; returns the function that ends this. */
export function blockLeaving(kind: HolderKind = "page"): () => void {
  const holder = {};
  holders.set(holder, kind);
  // An answer from before this input was not about it.
  agreed = undefined;
  window.addEventListener("beforeunload", preventUnload);
  document.addEventListener("click", askAtLink, true);
  return () => {
    holders.delete(holder);
    agreed = undefined;
    if (holders.size === 0) {
      window.removeEventListener("beforeunload", preventUnload);
      document.removeEventListener("click", askAtLink, true);
    }
  };
}

/** Lets the program leave the console without a warning, because it has stored the input. */
export function allowLeaving(): void {
  window.removeEventListener("beforeunload", preventUnload);
}

/**
 * Warns before leaving while `unsaved` is true.
 *
 * It starts and ends before the browser paints. A later effect would ask about input that the page already shows as
 * stored.
 */
export function useUnsavedWarning(unsaved: boolean, kind: HolderKind = "page"): void {
  useLayoutEffect(() => (unsaved ? blockLeaving(kind) : undefined), [unsaved, kind]);
}

function preventUnload(event: Event): void {
  event.preventDefault();
}

/** Asks before the address changes, so that a cancelled navigation is not in the history. */
function askAtLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href^="#/"]') : null;
  const here = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (link && here && !confirmNavigation(link.hash)) {
    event.preventDefault();
    event.stopPropagation();
  }
}
