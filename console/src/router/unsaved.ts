// Confirmation before unsaved input is lost by a link, the browser's buttons, or closing the tab.
import { useEffect } from "preact/hooks";

const QUESTION = "You have unsaved changes. Leave this page?";

/** Forms on the page with unsaved input. */
const holders = new Set<object>();
/** The address that the reader has confirmed. */
let agreed: string | undefined;

/** Tells whether navigation may proceed; asks the reader if input would be lost. */
export function confirmNavigation(hash: string): boolean {
  if (holders.size === 0 || hash === agreed) {
    return true;
  }
  const yes = window.confirm(QUESTION);
  agreed = yes ? hash : undefined;
  return yes;
}

/** Tells whether signing out may proceed; asks the reader if input would be lost. */
export function confirmSignOut(): boolean {
  return holders.size === 0 || window.confirm(QUESTION);
}

/** Warns before leaving while a form is unsaved; returns the function that ends this. */
export function blockLeaving(): () => void {
  const holder = {};
  holders.add(holder);
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

/** Warns before leaving while `unsaved` is true. */
export function useUnsavedWarning(unsaved: boolean): void {
  useEffect(() => (unsaved ? blockLeaving() : undefined), [unsaved]);
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
