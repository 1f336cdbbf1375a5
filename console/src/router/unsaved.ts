// Asks before something typed is lost: by a link, by the browser's own buttons, by closing the tab.
import { useEffect } from "preact/hooks";

const QUESTION = "What you typed here is not saved. Leave it all the same?";

/** Forms on the page that hold something unsaved. */
const holders = new Set<object>();
/** Where the reader agreed to go. */
let agreed: string | undefined;

/** Whether an address behind the # may be gone to; asks where that loses something. */
export function confirmNavigation(hash: string): boolean {
  if (holders.size === 0 || hash === agreed) {
    return true;
  }
  const yes = window.confirm(QUESTION);
  agreed = yes ? hash : undefined;
  return yes;
}

/** Whether the reader may be signed out; asks where that loses something. */
export function confirmSignOut(): boolean {
  return holders.size === 0 || window.confirm(QUESTION);
}

/** Holds the reader back while a form is unsaved; gives what lets go of them once it is stored. */
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

/** Holds the reader back as long as `unsaved` is true. */
export function useUnsavedWarning(unsaved: boolean): void {
  useEffect(() => (unsaved ? blockLeaving() : undefined), [unsaved]);
}

function preventUnload(event: Event): void {
  event.preventDefault();
}

/** Asks before the address changes, so that a refusal leaves no trace in the history. */
function askAtLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href^="#/"]') : null;
  const here = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (link && here && !confirmNavigation(link.hash)) {
    event.preventDefault();
    event.stopPropagation();
  }
}
