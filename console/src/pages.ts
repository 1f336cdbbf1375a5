import type { ComponentType } from "preact";
import type { IconName } from "@/components/Icon.tsx";
import { AlertBadge } from "@/pages/alerts/AlertBadge.tsx";
import { ConnectionBadge } from "@/pages/connections/ConnectionBadge.tsx";
import { InboxBadge } from "@/pages/inbox/InboxBadge.tsx";
import { ChainBadge } from "@/pages/scopes/ChainBadge.tsx";
import { hasRights, type Right } from "@/session/rights.ts";
import type { ZoneArea } from "@/shell/timeZone.ts";
import type { PageProps } from "./pageProps.ts";

/** A page of the console; its module exports its component as `default`. */
export interface PageEntry {
  /** First segment of its address. */
  path: string;
  title: string;
  group: "Home" | "Plant" | "Proof" | "Administration" | "Access";
  icon: IconName;
  /** Rights that are all required for the page. */
  rights: readonly Right[];
  /** Rights of which one is required, too. */
  anyRight?: readonly Right[];
  /** The area whose time zone the page shows; the default is `plant`. */
  zoneArea?: ZoneArea;
  /** True for a page without a link in the navigation. */
  unlisted?: true;
  /** A count next to its title. */
  badge?: ComponentType;
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

/** Every page, in the order of the navigation. */
export const PAGES: readonly PageEntry[] = [
  {
    path: "inbox",
    title: "Inbox",
    group: "Home",
    icon: "inbox",
    rights: [],
    anyRight: [
      "Workspace.Catalog.Read",
      "Workspace.Amendment.Read",
      "Workspace.Alert.Read",
      "Workspace.Provenance.Read",
    ],
    badge: InboxBadge,
    load: () => import("@/pages/inbox/Inbox.tsx"),
  },
  {
    path: "overview",
    title: "Overview",
    group: "Plant",
    icon: "pulse",
    rights: [],
    anyRight: ["Workspace.Catalog.Read", "Workspace.LiveStream.Read"],
    load: () => import("@/pages/overview/Overview.tsx"),
  },
  {
    path: "alerts",
    title: "Alerts",
    group: "Plant",
    icon: "bell",
    rights: ["Workspace.Alert.Read"],
    badge: AlertBadge,
    load: () => import("@/pages/alerts/Alerts.tsx"),
  },
  {
    path: "queries",
    title: "Queries",
    group: "Plant",
    icon: "query",
    rights: [],
    anyRight: [
      "Workspace.Catalog.Read",
      "Workspace.WarmQuery.Execute",
      "Workspace.WarmQuery.AdHoc",
      "Workspace.WarmQuery.Manage",
    ],
    load: () => import("@/pages/queries/Queries.tsx"),
  },
  {
    path: "downloads",
    title: "Downloads",
    group: "Plant",
    icon: "download",
    rights: ["Workspace.ColdData.Export"],
    load: () => import("@/pages/downloads/Downloads.tsx"),
  },
  {
    path: "imports",
    title: "Imports",
    group: "Plant",
    icon: "up",
    rights: ["Workspace.Telemetry.Import"],
    load: () => import("@/pages/imports/Imports.tsx"),
  },
  {
    path: "data",
    title: "Data",
    group: "Plant",
    icon: "database",
    rights: [],
    anyRight: ["Workspace.DataStore.Read", "Workspace.Document.Read", "Workspace.Document.Write"],
    load: () => import("@/pages/data/Data.tsx"),
  },
  {
    path: "audit",
    title: "Audit log",
    group: "Proof",
    icon: "chain",
    rights: ["Workspace.Provenance.Read"],
    zoneArea: "audit",
    load: () => import("@/pages/audit/Audit.tsx"),
  },
  {
    path: "scopes",
    title: "Audit scopes",
    group: "Proof",
    icon: "list",
    rights: ["Workspace.Provenance.Read"],
    zoneArea: "audit",
    badge: ChainBadge,
    load: () => import("@/pages/scopes/Scopes.tsx"),
  },
  {
    path: "amendments",
    title: "Amendments",
    group: "Proof",
    icon: "pencil",
    rights: ["Workspace.Amendment.Read"],
    load: () => import("@/pages/amendments/Amendments.tsx"),
  },
  {
    path: "signatures",
    title: "Signatures",
    group: "Proof",
    icon: "pen",
    rights: ["Workspace.Provenance.Read"],
    zoneArea: "audit",
    load: () => import("@/pages/signatures/Signatures.tsx"),
  },
  {
    path: "team",
    title: "Team",
    group: "Administration",
    icon: "people",
    rights: ["Workspace.Team.Read"],
    load: () => import("@/pages/team/Team.tsx"),
  },
  {
    path: "connections",
    title: "Connections",
    group: "Administration",
    icon: "plug",
    rights: ["Workspace.Catalog.Read"],
    badge: ConnectionBadge,
    load: () => import("@/pages/connections/Connections.tsx"),
  },
  {
    path: "surfaces",
    title: "Surfaces",
    group: "Administration",
    icon: "layers",
    rights: ["Workspace.Catalog.Read"],
    load: () => import("@/pages/surfaces/Surfaces.tsx"),
  },
  {
    path: "tables",
    title: "Tables",
    group: "Administration",
    icon: "table",
    rights: ["Workspace.DataStore.Read"],
    load: () => import("@/pages/tables/Tables.tsx"),
  },
  {
    path: "webhooks",
    title: "Webhooks",
    group: "Administration",
    icon: "send",
    rights: ["Workspace.Webhook.Manage"],
    load: () => import("@/pages/webhooks/Webhooks.tsx"),
  },
  {
    path: "policies",
    title: "Policies",
    group: "Administration",
    icon: "shield",
    rights: ["Workspace.Catalog.Read"],
    load: () => import("@/pages/policies/Policies.tsx"),
  },
  {
    path: "document",
    title: "Workspace document",
    group: "Administration",
    icon: "document",
    rights: ["Workspace.Catalog.Read", "Workspace.Team.Read"],
    load: () => import("@/pages/document/WorkspaceDocument.tsx"),
  },
  {
    path: "keys",
    title: "Keys and tokens",
    group: "Access",
    icon: "key",
    rights: [],
    load: () => import("@/pages/keys/Keys.tsx"),
  },
  {
    path: "developers",
    title: "Developers",
    group: "Access",
    icon: "code",
    rights: [],
    load: () => import("@/pages/developers/Developers.tsx"),
  },
  {
    path: "consent",
    title: "Allow an application",
    group: "Access",
    icon: "key",
    rights: [],
    unlisted: true,
    load: () => import("@/pages/consent/Consent.tsx"),
  },
];

/** Tells whether a caller with these rights may open a page. */
export function canOpen(page: PageEntry, held: readonly string[]): boolean {
  return hasRights(held, page.rights) && (page.anyRight?.some((right) => held.includes(right)) ?? true);
}
