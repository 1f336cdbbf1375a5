import { useLayoutEffect, useState } from "preact/hooks";
import type { Identity } from "@/api/keys.ts";
import { session } from "./index.ts";
import { hasRights, type Right } from "./rights.ts";
import type { SessionState } from "./session.ts";

/** Returns the session's state and rerenders on changes. */
export function useSession(): SessionState {
  const [state, setState] = useState(session.state);
  useLayoutEffect(() => {
    setState(session.state);
    return session.subscribe(() => setState(session.state));
  }, []);
  return state;
}

/** Returns the signed-in identity; pages render only within a session, or while an ended one waits for a sign-in. */
export function useIdentity(): Identity {
  const state = useSession();
  return (state.state === "in" ? state.who : state.held?.who) ?? NOBODY;
}

/** Tells whether the token has all of these rights; pages make no calls without the right. */
export function useHasRights(...rights: Right[]): boolean {
  return hasRights(useIdentity().accessRights, rights);
}

const NOBODY: Identity = { principal: null, name: "", workspace: null, accessRights: [], via: "jwt", expiresAt: null };
