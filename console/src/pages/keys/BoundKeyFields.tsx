import { fetchConnectionItems } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { ChoiceList } from "@/components/ChoiceList.tsx";
import { Field } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";
import { type Binding, splitWords } from "./keyRequest.ts";

interface Props {
  value: Binding;
  onChange: (value: Binding) => void;
  connectionError: string | undefined;
  deviceError: string | undefined;
}

/** The connections and device patterns of a bound key; callers who may not read the catalog type the lookups. */
export function BoundKeyFields({ value, onChange, connectionError, deviceError }: Props) {
  const lists = useHasRights("Workspace.Catalog.Read");
  return (
    <>
      {lists ? (
        <ConnectionChoice
          chosen={value.connections}
          onChange={(connections) => onChange({ ...value, connections })}
          error={connectionError}
        />
      ) : (
        <Field
          label="Connections"
          value={value.connections.join(" ")}
          onInput={(text) => onChange({ ...value, connections: splitWords(text) })}
          error={connectionError}
          hint="IDs (lookups), separated by spaces"
          mono
        />
      )}
      <Field
        label="Device IDs"
        value={value.devices}
        onInput={(devices) => onChange({ ...value, devices })}
        error={deviceError}
        placeholder="all devices"
        hint="Patterns, separated by spaces: rig-* gauge-0[1-4]. Empty for all devices."
        mono
      />
    </>
  );
}

function ConnectionChoice(props: {
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  error: string | undefined;
}) {
  const connections = useResource((signal) => fetchConnectionItems(api, signal), []);
  return (
    <Loaded resource={connections} rows={3}>
      {(items) => (
        <ChoiceList
          label="Connections"
          options={items.map(({ lookup, name }) => ({ value: lookup, label: name, note: lookup }))}
          chosen={props.chosen}
          onChange={props.onChange}
          error={props.error}
          hint="The key can send the telemetry of these connections only"
          empty="The workspace has no connections yet."
        />
      )}
    </Loaded>
  );
}
