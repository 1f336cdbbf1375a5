import { useEffect, useState } from "preact/hooks";
import type { Identity } from "@/api/keys.ts";
import { session } from "./index.ts";
import { hasRights, type Right } from "./rights.ts";
import type { SessionState } from "./session.ts";

/** The session's state, kept up to date. */
export function useSession(): SessionState {
  const [state, setState] = useState(session.state);
  useEffect(() => {
    setState(session.state);
    return session.subscribe(() => setState(session.state));
  }, []);
  return state;
}

/** Who is signed in. Pages are shown to somebody only. */
export function useIdentity(): Identity {
  const state = useSession();
  return state.state === "in" ? state.who : NOBODY;
}

/** Tells whether the token carries every one of some rights; a page calls nothing that its caller may not. */
export function useHasRights(...rights: Right[]): boolean {
  return hasRights(useIdentity().accessRights, rights);
}

const NOBODY: Identity = { principal: null, name: "", workspace: null, accessRights: [], via: "jwt", expiresAt: null };
