import type { Right } from "@/session/rights.ts";
import type { Role } from "@/session/roles.ts";
import { type Client, formatPath } from "./client.ts";
import { fetchAllItems, type ItemChange, type StoredItem } from "./items.ts";

/** A member of the team: a person or a service. */
export interface Member extends StoredItem, ItemChange {
  id: string;
  name: string;
  role: Role;
  /** Rights in addition to those of the role. */
  rights: Right[];
  enabled: boolean;
  service: boolean;
  /** Object id in Entra ID. */
  oid: string | null;
  /** All rights: those of the role and the additional ones. */
  accessRights: Right[];
}

/** Returns all members, sorted by id; needs Workspace.Team.Read. */
export function fetchMembers(api: Client, signal?: AbortSignal): Promise<Member[]> {
  return fetchAllItems<Member>(api, "/oi-api/team", "members", signal);
}

export function memberPath(id: string): string {
  return formatPath`/oi-api/team/${id}`;
}
