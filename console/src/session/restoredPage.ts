import { allowLeaving } from "@/router/unsaved.ts";
import type { Session } from "./session.ts";

/**
 * Reloads this page if the browser shows it again by its Back or Forward button, and its session ended meanwhile.
 *
 * Browsers keep a page that was left in memory, with its token and API key. Without the reload, the next user of the
 * machine could continue a session after the sign-out on another page of the tab.
 */
export function reloadAfterSignOut(session: Session, { persisted }: Pick<PageTransitionEvent, "persisted">): void {
  if (persisted && !session.isStored()) {
    allowLeaving();
    window.location.reload();
  }
}
