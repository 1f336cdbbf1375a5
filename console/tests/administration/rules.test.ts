import { expect, test } from "vitest";
import type { ConnectionItem } from "../../src/api/connections.ts";
import type { WorkspaceItem } from "../../src/api/policies.ts";
import type { Member } from "../../src/api/team.ts";
import { CONNECTION_RULES, NEW_CONNECTION } from "../../src/pages/connections/connectionRules.ts";
import { POLICY_RULES } from "../../src/pages/policies/policyRules.ts";
import { SURFACE_RULES } from "../../src/pages/surfaces/surfaceRules.ts";
import { countRights, listExtraRights, listRoles, MEMBER_RULES } from "../../src/pages/team/memberRules.ts";
import { listRetiredIds } from "../../src/pages/team/retired.ts";
import { ROLE_RIGHTS } from "../../src/session/roles.ts";

const MEMBER: Member = {
  etag: '"1"',
  id: "a/b@t",
  name: "A",
  role: "Viewer",
  rights: ["Workspace.Team.Manage"],
  enabled: false,
  service: false,
  oid: null,
  accessRights: [],
  editedBy: "x",
  updatedAt: "2026-01-05T08:00:00Z",
};

test("the form of a member never changes whether the member is enabled", () => {
  const draft = MEMBER_RULES.toDraft(MEMBER);
  expect(MEMBER_RULES.path(draft)).toBe("/oi-api/team/a%2Fb%40t");
  expect(MEMBER_RULES.toBody(draft)).toEqual({
    name: "A",
    role: "Viewer",
    rights: ["Workspace.Team.Manage"],
    service: false,
    oid: null,
  });
});

test("callers can give only roles and rights that they have", () => {
  const held = [...ROLE_RIGHTS.Viewer, "Workspace.Team.Manage"] as const;
  expect(listRoles(held, "Viewer")).toEqual(["Viewer"]);
  expect(listRoles(held, "Editor")).toEqual(["Viewer", "Editor"]);
  expect(listRoles(ROLE_RIGHTS.Admin, "Viewer")).toEqual(["Viewer", "Editor", "Admin"]);
  expect(listExtraRights(held, "Viewer")).toEqual(["Workspace.Team.Manage"]);
  expect(listExtraRights(held, "Admin")).toEqual([]);
  expect(countRights({ role: "Viewer", rights: ["Workspace.Team.Manage", "Workspace.Team.Read"] })).toBe(
    ROLE_RIGHTS.Viewer.length + 1,
  );
});

test("an ID is retired from its removal until a member has it again", () => {
  const removal = (RecordID: string, EntityID: string, UserID: string) => ({
    RecordID,
    EntityID,
    UserID,
    Timestamp: "2026-01-05T08:00:00Z",
    ActionType: "Catalog.Member.Removed",
    EntityType: "Member",
    BeforeState: { name: "Old" },
    PreviousHash: "",
    Hash: "",
  });
  const removals = [removal("1", "a", "x"), removal("3", "a", "y"), removal("2", "b", "x"), removal("4", "c", "x")];
  const retired = listRetiredIds(removals, [{ id: "c" }]);
  expect(retired.map(({ id, removedBy }) => [id, removedBy])).toEqual([
    ["a", "y"],
    ["b", "x"],
  ]);
});

const CONNECTION: ConnectionItem = {
  etag: '"1"',
  lookup: "rig",
  name: "Rig",
  type: "CLOUD_EVENT_HUB",
  enabled: true,
  source: {
    devices: ["rig-*"],
    timestampPointer: "/ts",
    deviceIdPointer: "/deviceId",
    messageIdPointer: "/messageId",
    timestampFormat: "rfc3339",
    eventHub: "hub",
    consumerGroup: "g",
  },
  simulator: null,
  signals: [
    { name: "Speed", pointer: "/motor/speed", type: "real", unit: "1/min", description: null, min: 0, max: null },
    { name: "On", pointer: "/on", type: "bool", unit: null, description: "Runs", min: null, max: null },
  ],
  status: "CONNECTED",
  statusReason: null,
  stats: null,
  surfaces: [],
  editedBy: null,
  updatedAt: null,
};

test("a connection is sent back as it was read, and only an Event Hub has a hub", () => {
  const draft = CONNECTION_RULES.toDraft(CONNECTION);
  const { name, type, enabled, source, simulator, signals } = CONNECTION;
  expect(CONNECTION_RULES.toBody(draft)).toEqual({ name, type, enabled, source, simulator, signals });
  const other = { ...source, eventHub: null, consumerGroup: "$Default" };
  expect(CONNECTION_RULES.toBody({ ...draft, type: "CLOUD_IOT_HUB" })).toMatchObject({ source: other });
  expect(CONNECTION_RULES.toBody({ ...draft, eventHub: " " })).toMatchObject({ source: other });
});

test("a simulator is JSON, and sources have JSON pointers", () => {
  const simulated = { ...NEW_CONNECTION, lookup: "x", name: "X", type: "SIMULATOR" as const };
  expect(Object.values(CONNECTION_RULES.check(simulated, true)).filter(Boolean)).toEqual([]);
  expect(CONNECTION_RULES.check({ ...simulated, simulator: "{" }, true).simulator).toBeDefined();
  const wrong = { ...NEW_CONNECTION, timestampPointer: "ts" };
  expect(Object.keys(withMessages(CONNECTION_RULES.check(wrong, true)))).toEqual([
    "lookup",
    "name",
    "source.timestampPointer",
  ]);
});

const WORKSPACE: WorkspaceItem = {
  etag: '"1"',
  id: "plant",
  name: "Plant",
  description: null,
  tier: "pro",
  limits: { requestsPerMinute: 1, concurrent: 1 },
  policies: {
    provenance: {
      requireApproval: true,
      requireTwoPersonAuth: false,
      requireReasonText: true,
      reasonCategories: ["a"],
    },
    quotas: { streamsPerPrincipal: 3, jobsPerPrincipal: null, downloadBytes: null },
    signatures: { amendments: "required", queries: "off", maxAgeSeconds: 0, meanings: ["approval", "rejection"] },
  },
  stats: { connectionCount: 0, surfaceCount: 0, queryCount: 0, memberCount: 0 },
};

test("policies are sent back as they were read, also those that the page does not show", () => {
  const { name, description } = WORKSPACE;
  const policies = { ...WORKSPACE.policies, telemetry: { requireBoundKeys: true } };
  const body = POLICY_RULES.toBody(POLICY_RULES.toDraft({ ...WORKSPACE, policies }));
  expect(body).toEqual({ name, description, policies });
  const off = { ...WORKSPACE, policies: { ...policies, provenance: null } };
  expect(POLICY_RULES.toBody(POLICY_RULES.toDraft(off))).toMatchObject({ policies: { provenance: null } });
});

test("meanings are unique and short, and the age is a number of seconds", () => {
  const draft = POLICY_RULES.toDraft(WORKSPACE);
  const check = (changes: object) => Object.keys(withMessages(POLICY_RULES.check({ ...draft, ...changes }, false)));
  expect(check({ maxAgeSeconds: "3600", meanings: "" })).toEqual([]);
  for (const maxAgeSeconds of ["", "-1", "1.5", "3601", "x"]) {
    expect(check({ maxAgeSeconds })).toEqual(["policies.signatures.maxAgeSeconds"]);
  }
  const many = Array.from({ length: 21 }, (_, index) => `meaning ${index}`).join("\n");
  for (const meanings of ["a\na", "x".repeat(65), many]) {
    expect(check({ meanings })).toEqual(["policies.signatures.meanings"]);
  }
});

test("categories are unique and quotas are whole numbers", () => {
  const draft = POLICY_RULES.toDraft(WORKSPACE);
  const check = (changes: object) => Object.keys(withMessages(POLICY_RULES.check({ ...draft, ...changes }, false)));
  expect(check({})).toEqual([]);
  expect(check({ reasonCategories: " \n" })).toEqual(["policies.provenance.reasonCategories"]);
  expect(check({ reasonCategories: "a\na" })).toEqual(["policies.provenance.reasonCategories"]);
  for (const wrong of ["0", "-1", "1.5", "x"]) {
    expect(check({ jobsPerPrincipal: wrong })).toEqual(["policies.quotas.jobsPerPrincipal"]);
  }
});

test("a surface without a description has none", () => {
  const draft = { lookup: "s", name: "S", description: "", connections: ["b", "a"] };
  expect(SURFACE_RULES.toBody(draft)).toEqual({ name: "S", description: null, connections: ["b", "a"] });
});

function withMessages(messages: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(messages).filter((entry): entry is [string, string] => Boolean(entry[1])));
}
