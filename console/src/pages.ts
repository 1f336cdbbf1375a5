import type { ComponentType } from "preact";
import type { IconName } from "@/components/Icon.tsx";
import { hasRights, type Right } from "@/session/rights.ts";
import type { PageProps } from "./pageProps.ts";

/** A page of the console; its module exports its component as `default`. */
export interface PageEntry {
  /** First segment of its address. */
  path: string;
  title: string;
  group: "Plant" | "Proof" | "Access";
  icon: IconName;
  /** Rights that are all required for the page. */
  rights: readonly Right[];
  /** Rights of which one is required, too. */
  anyRight?: readonly Right[];
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

/** Every page, in the order of the navigation. */
export const PAGES: readonly PageEntry[] = [
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
    load: () => import("@/pages/audit/Audit.tsx"),
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
];

/** Tells whether a caller with these rights may open a page. */
export function canOpen(page: PageEntry, held: readonly string[]): boolean {
  return hasRights(held, page.rights) && (page.anyRight?.some((right) => held.includes(right)) ?? true);
}
