import { api } from "@/api/index.ts";
import { fetchSurfaces } from "@/api/plant.ts";
import { Field, Select } from "@/components/Field.tsx";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";

interface Props {
  value: string;
  onChange: (surface: string) => void;
  error: string | undefined;
}

/** An input for the query's surface: a list if the token can read it, else a text field. */
export function SurfaceInput(props: Props) {
  return useHasRights("Workspace.Catalog.Read") ? <SurfaceSelect {...props} /> : <TypedSurface {...props} />;
}

function TypedSurface({ value, onChange, error }: Props) {
  return <Field label="Surface" mono hint="Its ID (lookup)" value={value} onInput={onChange} error={error} />;
}

function SurfaceSelect(props: Props) {
  const { data, error } = useResource((signal) => fetchSurfaces(api, signal), []);
  if (error !== undefined) {
    return <TypedSurface {...props} />;
  }
  const options = (data ?? []).map(({ id, name }) => ({ value: id, label: name === id ? id : `${name} (${id})` }));
  const known = options.some((option) => option.value === props.value);
  const first = {
    value: known ? "" : props.value,
    label: known || props.value === "" ? "Choose a surface" : props.value,
  };
  return (
    <Select
      label="Surface"
      value={props.value}
      options={[first, ...options]}
      onChange={props.onChange}
      error={props.error}
      disabled={data === undefined}
    />
  );
}
