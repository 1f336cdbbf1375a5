import { useEffect } from "preact/hooks";
import { api } from "@/api/index.ts";
import { fetchConnections } from "@/api/plant.ts";
import { Field, Select } from "@/components/Field.tsx";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";

interface Props {
  value: string;
  disabled: boolean;
  onChange: (connection: string) => void;
}

/** The connection that receives the history: from the catalog, or by lookup if the token cannot read it. */
export function ConnectionField({ value, disabled, onChange }: Props) {
  const readable = useHasRights("Workspace.Catalog.Read");
  const found = useResource(async (signal) => (readable ? await fetchConnections(api, signal) : undefined), [readable]);
  const first = found.data?.[0]?.id;
  useEffect(() => {
    if (first !== undefined && value === "") {
      onChange(first);
    }
  }, [first]);
  if (found.data === undefined) {
    return (
      <Field label="Connection" value={value} hint="Its ID (lookup)" mono disabled={disabled} onInput={onChange} />
    );
  }
  const options = found.data.map(({ id, name }) => ({ value: id, label: name === id ? id : `${name} (${id})` }));
  return <Select label="Connection" value={value} options={options} disabled={disabled} onChange={onChange} />;
}
