import css from "@/administration/Administration.module.css";
import type { ItemForm } from "@/administration/useItemForm.ts";
import { fetchConnectionItems } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import type { SurfaceItem } from "@/api/surfaces.ts";
import { ChoiceList } from "@/components/ChoiceList.tsx";
import { Field } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import type { SurfaceDraft } from "./surfaceRules.ts";

interface Props {
  form: ItemForm<SurfaceItem, SurfaceDraft>;
}

/** The fields of a surface; its connections are chosen from a list. */
export function SurfaceFields({ form }: Props) {
  const { draft, change, message, isNew } = form;
  return (
    <>
      <div class={css.fields}>
        <Field
          label="ID"
          mono
          disabled={!isNew}
          hint={
            isNew
              ? "Used in addresses and in the API (lookup). Letters, digits, - and _ are allowed. It cannot be changed later"
              : "Used in addresses and in the API (lookup). It cannot be changed"
          }
          value={draft.lookup}
          onInput={(lookup) => change({ lookup })}
          error={message("lookup")}
        />
        <Field label="Name" value={draft.name} onInput={(name) => change({ name })} error={message("name")} />
        <Field
          label="Description"
          value={draft.description}
          onInput={(description) => change({ description })}
          error={message("description")}
        />
      </div>
      <ConnectionChoice form={form} />
    </>
  );
}

function ConnectionChoice({ form }: Props) {
  const { draft, change, message } = form;
  const resource = useResource((signal) => fetchConnectionItems(api, signal), []);
  return (
    <Loaded resource={resource} rows={3}>
      {(connections) => {
        const known = connections.map(({ lookup, name }) => ({ value: lookup, label: name, note: lookup }));
        const missing = draft.connections.filter((lookup) => connections.every((each) => each.lookup !== lookup));
        return (
          <ChoiceList
            label="Connections"
            options={[...known, ...missing.map((value) => ({ value, label: value, note: "does not exist" }))]}
            chosen={draft.connections}
            onChange={(chosen) => change({ connections: chosen })}
            error={message("connections")}
            hint="Queries of the surface read the telemetry of these connections"
            empty="The workspace has no connections yet."
          />
        );
      }}
    </Loaded>
  );
}
