// Explanations of rejected changes in plain words.
import { ApiError, isOutdated } from "@/api/problem.ts";
import { buildHref } from "@/router/route.ts";

/** An item that prevents a change. */
interface Blocker {
  name: string;
  href: string;
}

/** Why the service rejected a change, and the next step. */
export interface Explanation {
  title: string;
  advice: string;
  blockers: readonly Blocker[];
  /** Rights that the caller lacks. */
  rights: readonly string[];
}

interface Text {
  title: string;
  advice: string;
  /** The page of the items in `usedBy`, except for alert rules. */
  usedBy?: string;
}

const TEXTS: Record<string, Text> = {
  CONNECTION_IN_USE: {
    title: "The connection was not removed, because it is in use.",
    advice: "Remove the connection from these surfaces and alert rules first:",
    usedBy: "surfaces",
  },
  SURFACE_IN_USE: {
    title: "The surface was not removed, because it is in use.",
    advice: "Remove these queries and alert rules first, or move them to another surface:",
    usedBy: "queries",
  },
  MEMBER_IN_USE: {
    title: "The member was not removed, because queries depend on their approval.",
    advice: "Disable the member instead, or have these queries approved by another person:",
    usedBy: "queries",
  },
  LAST_ADMINISTRATOR: {
    title: "The workspace needs at least one enabled administrator.",
    advice: "Give another person the role Admin first. Services and disabled members do not count.",
  },
  SELF_LOCKOUT: {
    title: "You cannot remove your own access to the team.",
    advice: "You cannot disable or remove yourself or give up Workspace.Team.Manage. Ask another administrator.",
  },
  RIGHT_NOT_HELD: {
    title: "The change involves rights that you do not have.",
    advice: "You can give only rights that you have, and change only members who have no other rights. You lack:",
  },
  ACCESS_RIGHT_MISSING: {
    title: "You no longer have the right for this change.",
    advice: "Another administrator may have changed your rights. You lack:",
  },
  MEMBER_ID_RETIRED: {
    title: "The ID belonged to a removed member and cannot be used again.",
    advice: "Audit records name the earlier member. A new member needs another ID.",
  },
  MEMBER_ID_TAKEN: {
    title: "The ID looks like the ID of another member.",
    advice: "IDs must differ in more than case or width of letters. Choose another ID.",
  },
  MEMBER_OID_TAKEN: {
    title: "Another member has this object ID.",
    advice: "Each account of Entra ID belongs to one member.",
  },
  PROVENANCE_REQUIRED: {
    title: "The audit log cannot be switched off here.",
    advice: "Only a person with access to the workspace's stores can do that.",
  },
  WORKSPACE_ID_FIXED: {
    title: "The document belongs to another workspace.",
    advice: "The ID of a workspace cannot be changed. Correct `workspace.id`, or sign in to that workspace.",
  },
  CATALOG_CHANGED: {
    title: "Other persons changed the workspace at the same time.",
    advice: "Try again.",
  },
  PARTITION_KEY_IMMUTABLE: {
    title: "The partition key path of a container cannot be changed.",
    advice: "Create another container instead.",
  },
  PRECONDITION_FAILED: {
    title: "Another person changed this after you opened it. Nothing was changed.",
    advice: "Reload to see the current version, then decide again.",
  },
};

const POSSIBLY_OWN: Text = {
  title: "This changed after you opened it, possibly by your earlier attempt.",
  advice: "Reload to see the current version, then decide again.",
};

/** Explains a rejected change; undefined if the service's message is sufficient. */
export function explainRefusal(error: unknown): Explanation | undefined {
  const text = error instanceof ApiError ? findText(error) : undefined;
  if (!(error instanceof ApiError) || text === undefined) {
    return undefined;
  }
  const { accessRights, accessRight } = error.members;
  return {
    title: text.title,
    advice: text.advice,
    blockers: text.usedBy === undefined ? [] : listBlockers(error, text.usedBy),
    rights: typeof accessRight === "string" ? [accessRight] : toTexts(accessRights),
  };
}

function listBlockers(error: ApiError, page: string): Blocker[] {
  const { usedBy, alertRules } = error.members;
  const names = toTexts(usedBy);
  // Alert rules are last in `usedBy`.
  const firstRule = names.length - toTexts(alertRules).length;
  return names.map((name, index) => ({ name, href: buildHref(index < firstRule ? page : "alerts", [name]) }));
}

function findText(error: ApiError): Text | undefined {
  return isOutdated(error) && error.isPossiblyOwn ? POSSIBLY_OWN : TEXTS[error.code];
}

function toTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
