import type { FormRules } from "@/administration/useItemForm.ts";
import { type ContainerItem, containerPath, type DataClass } from "@/api/dataStores.ts";
import type { Verb } from "@/api/tables.ts";

/** The form of a table. */
export interface TableDraft {
  dataClass: DataClass;
  /** Sorted. */
  expose: Verb[];
}

/** Descriptions of the operations on documents. */
export const VERBS: Record<Verb, string> = {
  list: "page through documents",
  read: "read one document",
  create: "add documents",
  replace: "change documents",
  delete: "delete documents",
};

/** Returns the rules of the form for one container; containers are created on the page Data. */
export function buildTableRules(database: string, name: string): FormRules<ContainerItem, TableDraft> {
  return {
    noun: "table",
    labels: { dataClass: "Data class", expose: "Published operations" },
    path: () => containerPath(database, name),
    toDraft: ({ dataClass, expose }) => ({ dataClass, expose: [...expose].sort() }),
    toBody: ({ dataClass, expose }) => ({ dataClass, expose: [...expose].sort() }),
    check: () => ({}),
  };
}
