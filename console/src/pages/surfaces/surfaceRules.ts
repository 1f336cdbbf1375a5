import { checkLookup, checkName } from "@/administration/fieldErrors.ts";
import type { FormRules } from "@/administration/useItemForm.ts";
import { type SurfaceItem, surfacePath } from "@/api/surfaces.ts";

/** The form of a surface. */
export interface SurfaceDraft {
  lookup: string;
  name: string;
  description: string;
  connections: string[];
}

export const NEW_SURFACE: SurfaceDraft = { lookup: "", name: "", description: "", connections: [] };

export const SURFACE_RULES: FormRules<SurfaceItem, SurfaceDraft> = {
  noun: "surface",
  labels: { lookup: "ID", name: "Name", description: "Description", connections: "Connections" },
  path: ({ lookup }) => surfacePath(lookup),
  toDraft: ({ lookup, name, description, connections }) => ({
    lookup,
    name,
    description: description ?? "",
    connections,
  }),
  toBody: ({ name, description, connections }) => ({
    name,
    description: description === "" ? null : description,
    connections,
  }),
  check: ({ lookup, name }, isNew) => ({
    lookup: isNew ? checkLookup(lookup) : undefined,
    name: checkName(name, "a name"),
  }),
  keyField: "lookup",
  canRecreate: true,
};
