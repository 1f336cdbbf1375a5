import css from "@/administration/Administration.module.css";
import type { ItemForm } from "@/administration/useItemForm.ts";
import type { ConnectionType } from "@/api/catalog.ts";
import type { ConnectionItem, TimestampFormat } from "@/api/connections.ts";
import { CONNECTION_TYPES } from "@/components/ConnectionStatusBadge.tsx";
import { Checkbox, Field, Select, TextArea } from "@/components/Field.tsx";
import type { ConnectionDraft } from "./connectionRules.ts";
import { SignalFields } from "./SignalFields.tsx";

interface Props {
  form: ItemForm<ConnectionItem, ConnectionDraft>;
}

const TYPES = (Object.keys(CONNECTION_TYPES) as ConnectionType[]).map((value) => ({
  value,
  label: CONNECTION_TYPES[value],
}));
const FORMATS: readonly { value: TimestampFormat; label: string }[] = [
  { value: "rfc3339", label: "RFC 3339: 2026-01-05T08:00:00Z" },
  { value: "epochSeconds", label: "seconds since 1970" },
  { value: "epochMilliseconds", label: "milliseconds since 1970" },
];

/** The fields of a connection. */
export function ConnectionFields({ form }: Props) {
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
        <Select
          label="Type"
          value={draft.type}
          options={TYPES}
          onChange={(type) => change({ type })}
          error={message("type")}
        />
      </div>
      <Checkbox
        label="Enabled: the workspace accepts its messages"
        checked={draft.enabled}
        onChange={(enabled) => change({ enabled })}
      />
      {draft.type === "SIMULATOR" ? (
        <TextArea
          label="Simulator"
          mono
          rows={12}
          hint="JSON: intervalMs, devices, seed, variables. Each variable has a name, a kind, and the fields of its kind"
          value={draft.simulator}
          onInput={(simulator) => change({ simulator })}
          error={message("simulator")}
        />
      ) : (
        <SourceFields form={form} />
      )}
      <SignalFields form={form} />
    </>
  );
}

function SourceFields({ form }: Props) {
  const { draft, change, message } = form;
  const pointers = [
    { field: "timestampPointer", label: "Time", hint: "JSON pointer to the field in the message, such as /timestamp" },
    {
      field: "deviceIdPointer",
      label: "Device ID",
      hint: "JSON pointer to the field in the message, such as /deviceId",
    },
    {
      field: "messageIdPointer",
      label: "Message ID",
      hint: "JSON pointer to the field in the message; messages with a repeated ID are stored once",
    },
  ] as const;
  return (
    <>
      <TextArea
        label="Devices"
        mono
        rows={3}
        hint="One pattern on each line, such as rig-*. Empty accepts all devices"
        value={draft.devices}
        onInput={(devices) => change({ devices })}
        error={message("source.devices")}
      />
      <div class={css.fields}>
        {pointers.map(({ field, label, hint }) => (
          <Field
            key={field}
            label={label}
            mono
            hint={hint}
            value={draft[field]}
            onInput={(text) => change({ [field]: text })}
            error={message(`source.${field}`)}
          />
        ))}
        <Select
          label="Format of the time"
          value={draft.timestampFormat}
          options={FORMATS}
          onChange={(timestampFormat) => change({ timestampFormat })}
          error={message("source.timestampFormat")}
        />
        {draft.type === "CLOUD_EVENT_HUB" && <EventHubFields form={form} />}
      </div>
    </>
  );
}

function EventHubFields({ form }: Props) {
  const { draft, change, message } = form;
  return (
    <>
      <Field
        label="Event Hub"
        mono
        hint="one of the hubs in the setting EVENT_HUB_SOURCES; empty for the default hub"
        value={draft.eventHub}
        onInput={(eventHub) => change({ eventHub })}
        error={message("source.eventHub")}
      />
      <Field
        label="Consumer group"
        mono
        disabled={draft.eventHub.trim() === ""}
        hint="can be set only if an Event Hub is set"
        value={draft.consumerGroup}
        onInput={(consumerGroup) => change({ consumerGroup })}
        error={message("source.consumerGroup")}
      />
    </>
  );
}
