import { useHasRights, useIdentity } from "@/session/hooks.ts";
import type { Reader } from "./waiting.ts";

/** Returns what the signed-in user can read and decide in the inbox. */
export function useReader(): Reader {
  return {
    principal: useIdentity().principal,
    readsQueries: useHasRights("Workspace.Catalog.Read"),
    readsAmendments: useHasRights("Workspace.Amendment.Read"),
    approvesQueries: useHasRights("Workspace.WarmQuery.Approve"),
    approvesAmendments: useHasRights("Workspace.Amendment.Approve"),
  };
}
