import { Session } from "./session.ts";

/** The one session of the page. */
export const session = new Session();
