import { useState } from "preact/hooks";
import { ApiError } from "@/api/index.ts";
import { DateField } from "@/components/DateField.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { formatCount } from "@/format.ts";
import { DEFAULT_LIMIT, type Extent, MAX_ROWS } from "./queryCall.ts";
import { createLastDay, isPreset, PRESETS } from "./timeRanges.ts";

interface Props {
  extent: Extent;
  onChange: (extent: Extent) => void;
  error: unknown;
}

const DURATION = "duration";
const BETWEEN = "between";
const OPTIONS = [
  ...PRESETS,
  { value: BETWEEN, label: "From … to …" },
  { value: DURATION, label: "Other duration…" },
] as const;

/** Inputs for the time range, relative or absolute, and for the row limit. */
export function ExtentInputs({ extent, onChange, error }: Props) {
  const [mode, setMode] = useState(() => chooseMode(extent));
  const of = (field: string) => (error instanceof ApiError ? error.fieldMessage(field) : undefined);
  const choose = (value: string) => {
    const relative = value === DURATION ? "PT12H" : value;
    setMode(value);
    onChange({
      ...extent,
      ...(value === BETWEEN
        ? { timeRange: "", ...createLastDay(new Date()) }
        : { timeRange: relative, from: "", to: "" }),
    });
  };
  return (
    <>
      <Select
        label="Time range"
        value={mode}
        options={OPTIONS}
        onChange={choose}
        error={isPreset(mode) ? of("timeRange") : undefined}
      />
      {mode === DURATION && (
        <Field
          label="Duration"
          mono
          hint="ISO 8601, such as PT90M (90 minutes)"
          value={extent.timeRange}
          onInput={(timeRange) => onChange({ ...extent, timeRange })}
          error={of("timeRange")}
        />
      )}
      {mode === BETWEEN && (
        <>
          <DateField
            label="From"
            value={extent.from}
            onInput={(from) => onChange({ ...extent, from })}
            error={of("from")}
          />
          <DateField
            label="To"
            hint="this moment is not included"
            value={extent.to}
            onInput={(to) => onChange({ ...extent, to })}
            error={of("to")}
          />
        </>
      )}
      <Field
        label={`Row limit, up to ${formatCount(MAX_ROWS)}`}
        placeholder={DEFAULT_LIMIT}
        value={extent.limit}
        onInput={(limit) => onChange({ ...extent, limit })}
        error={of("limit")}
      />
    </>
  );
}

function chooseMode({ timeRange, from, to }: Extent): string {
  if (from !== "" || to !== "") {
    return BETWEEN;
  }
  return isPreset(timeRange) ? timeRange : DURATION;
}
