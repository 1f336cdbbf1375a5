import { type Client, formatPath } from "./client.ts";
import type { ItemChange, StoredItem } from "./items.ts";
import type { Verb } from "./tables.ts";

export type DataClass = "operational" | "reference" | "evidence";

/** A declared container, in a list without its latest change. */
export interface DeclaredContainer extends StoredItem {
  name: string;
  partitionKeyPath: string;
  dataClass: DataClass;
  expose: Verb[];
  provisioned: boolean;
}

/** The record of a declared container. */
export interface ContainerItem extends DeclaredContainer, ItemChange {}

export interface Database {
  lookup: string;
  access: "granted" | "refused";
  containers: DeclaredContainer[];
}

/** A document-store account. */
export interface DataStore {
  lookup: string;
  databases: Database[];
}

/** Returns the data stores as declared; needs Workspace.DataStore.Read. */
export async function fetchDataStores(api: Client, signal?: AbortSignal): Promise<DataStore[]> {
  return (await api.get<{ dataStores: DataStore[] }>("/oi-api/data-stores", signal ? { signal } : {})).dataStores;
}

/** Returns the address of a container's record; a lookup names one database of the workspace. */
export function containerPath(database: string, name: string): string {
  return formatPath`/oi-api/data-stores/${database}/containers/${name}`;
}
