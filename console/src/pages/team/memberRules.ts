import { checkName } from "@/administration/fieldErrors.ts";
import type { FormRules } from "@/administration/useItemForm.ts";
import { type Member, memberPath } from "@/api/team.ts";
import { listMissingRights, type Right } from "@/session/rights.ts";
import { ROLE_RIGHTS, ROLES, type Role } from "@/session/roles.ts";

/** The form of a member. `enabled` has actions of its own. */
export interface MemberDraft {
  id: string;
  name: string;
  role: Role;
  /** Extra rights, sorted. */
  rights: Right[];
  service: boolean;
  oid: string;
}

/** A new member begins with the least rights. */
export const NEW_MEMBER: MemberDraft = { id: "", name: "", role: "Viewer", rights: [], service: false, oid: "" };

export const MEMBER_RULES: FormRules<Member, MemberDraft> = {
  noun: "member",
  labels: { id: "ID", name: "Name", role: "Role", rights: "Extra rights", service: "Service", oid: "Object ID" },
  path: ({ id }) => memberPath(id),
  toDraft: ({ id, name, role, rights, service, oid }) => ({
    id,
    name,
    role,
    rights: [...rights].sort(),
    service,
    oid: oid ?? "",
  }),
  toBody: ({ name, role, rights, service, oid }) => ({ name, role, rights, service, oid: oid === "" ? null : oid }),
  check: ({ id, name, oid }, isNew) => ({
    id: isNew ? checkName(id, "an ID, such as an e-mail address") : undefined,
    name: checkName(name, "a name"),
    oid: oid === "" ? undefined : checkName(oid, "an object ID"),
  }),
  keyField: "id",
  removedCode: "MEMBER_ID_RETIRED",
};

/** Returns the roles that a caller can give, and the current one. */
export function listRoles(held: readonly Right[], current: Role): Role[] {
  return ROLES.filter((role) => role === current || listMissingRights(held, ROLE_RIGHTS[role]).length === 0);
}

/** Returns the extra rights that a caller can give to a role: those that the role lacks and the caller has. */
export function listExtraRights(held: readonly Right[], role: Role): Right[] {
  return listMissingRights(ROLE_RIGHTS[role], held);
}

/** Returns all rights of a draft. */
export function countRights(draft: Pick<MemberDraft, "role" | "rights">): number {
  return new Set<string>([...ROLE_RIGHTS[draft.role], ...draft.rights]).size;
}
