import type { ImportFormat, ImportMapping } from "@/api/imports.ts";
import type { ApiError } from "@/api/index.ts";
import { Field, Select } from "@/components/Field.tsx";
import css from "./Imports.module.css";

const FORMATS = [
  { value: "rfc3339", label: "Date and time" },
  { value: "epochSeconds", label: "Seconds since 1970" },
  { value: "epochMilliseconds", label: "Milliseconds since 1970" },
] as const;
const DELIMITERS = [
  { value: ",", label: "Comma" },
  { value: ";", label: "Semicolon" },
  { value: "\t", label: "Tab" },
  { value: "|", label: "Vertical bar" },
];
const DECIMALS = [
  { value: ".", label: "Point: 1.5" },
  { value: ",", label: "Comma: 1,5" },
] as const;

/** Labels of the fields, by the names in requests. */
const LABELS = {
  timestamp: "Column with the time",
  timestampFormat: "Format of the time",
  timeZone: "Time zone",
  device: "Column with the device ID",
  messageId: "Column with the message ID",
  delimiter: "Delimiter",
  decimal: "Decimal mark",
} satisfies Partial<Record<keyof ImportMapping, string>>;

/** Replaces the names of fields in a message of the service, such as `mapping.timeZone`, by their labels. */
export function nameFields(message: string): string {
  const labels = new Map(Object.entries(LABELS));
  return message.replace(/`mapping\.(\w+)`/g, (all, name: string) =>
    labels.has(name) ? `“${labels.get(name)}”` : all,
  );
}

interface Props {
  format: ImportFormat;
  mapping: ImportMapping;
  /** Columns of the file; empty if unknown. */
  columns: readonly string[];
  error: ApiError | undefined;
  onChange: (mapping: ImportMapping) => void;
}

/** Inputs for the meaning of the columns. */
export function MappingFields({ format, mapping, columns, error, onChange }: Props) {
  const change = (part: Partial<ImportMapping>) => onChange(removeEmpty({ ...mapping, ...part }));
  const of = (member: string) => error?.fieldMessage(`mapping.${member}`);
  const isText = (mapping.timestampFormat ?? "rfc3339") === "rfc3339";
  return (
    <div class={css.fields}>
      <ColumnField
        label={LABELS.timestamp}
        value={mapping.timestamp}
        columns={columns}
        error={of("timestamp")}
        onChange={(timestamp) => change({ timestamp })}
      />
      <Select
        label={LABELS.timestampFormat}
        value={mapping.timestampFormat ?? "rfc3339"}
        options={FORMATS}
        onChange={(timestampFormat) =>
          change({ timestampFormat, ...(timestampFormat === "rfc3339" ? {} : { timeZone: "" }) })
        }
      />
      {isText && (
        <Field
          label={LABELS.timeZone}
          value={mapping.timeZone ?? ""}
          hint="For times without a zone, such as Europe/Berlin"
          error={of("timeZone")}
          onInput={(timeZone) => change({ timeZone: timeZone.trim() })}
        />
      )}
      <ColumnField
        label={LABELS.device}
        none="None: the connection's ID is the device ID"
        value={mapping.device ?? ""}
        columns={columns}
        error={of("device")}
        onChange={(device) => change({ device })}
      />
      <ColumnField
        label={LABELS.messageId}
        none="None: derived from the content"
        value={mapping.messageId ?? ""}
        columns={columns}
        error={of("messageId")}
        onChange={(messageId) => change({ messageId })}
      />
      {format === "csv" && (
        <>
          <Select
            label={LABELS.delimiter}
            value={mapping.delimiter ?? ","}
            options={DELIMITERS}
            error={of("delimiter")}
            onChange={(delimiter) => change({ delimiter })}
          />
          <Select
            label={LABELS.decimal}
            value={mapping.decimal ?? "."}
            options={DECIMALS}
            onChange={(decimal) => change({ decimal })}
          />
        </>
      )}
    </div>
  );
}

interface ColumnProps {
  label: string;
  /** What applies without a column; absent if a column is required. */
  none?: string;
  value: string;
  columns: readonly string[];
  error: string | undefined;
  onChange: (column: string) => void;
}

function ColumnField({ label, none, value, columns, error, onChange }: ColumnProps) {
  if (columns.length === 0) {
    return <Field label={label} value={value} error={error} mono hint={none ?? ""} onInput={onChange} />;
  }
  const options = [
    ...(none === undefined ? [] : [{ value: "", label: none }]),
    ...columns.map((name) => ({ value: name, label: name })),
  ];
  return <Select label={label} value={value} options={options} error={error} onChange={onChange} />;
}

function removeEmpty(mapping: ImportMapping): ImportMapping {
  return Object.fromEntries(
    Object.entries(mapping).filter(([name, value]) => value !== "" || name === "timestamp"),
  ) as unknown as ImportMapping;
}
