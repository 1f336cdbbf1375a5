import { useState } from "preact/hooks";
import { ApiError } from "@/api/index.ts";
import { Field, Select } from "@/components/Field.tsx";
import { formatCount } from "@/format.ts";
import { DEFAULT_LIMIT, type Extent, MAX_ROWS } from "./queryCall.ts";
import { isPreset, PRESETS } from "./timeRanges.ts";

interface Props {
  extent: Extent;
  onChange: (extent: Extent) => void;
  error: unknown;
}

const OWN = "own";

/** Inputs for the time range and the row limit. */
export function ExtentInputs({ extent, onChange, error }: Props) {
  const [own, setOwn] = useState(!isPreset(extent.timeRange));
  const failing = error instanceof ApiError ? error : undefined;
  const choose = (value: string) => {
    setOwn(value === OWN);
    onChange({ ...extent, timeRange: value === OWN ? "PT12H" : value });
  };
  return (
    <>
      <Select
        label="Time range"
        value={own ? OWN : extent.timeRange}
        options={[...PRESETS, { value: OWN, label: "Other…" }]}
        onChange={choose}
        error={own ? undefined : failing?.fieldMessage("timeRange")}
      />
      {own && (
        <Field
          label="Duration"
          mono
          hint="ISO 8601, such as PT90M or P2DT12H"
          value={extent.timeRange}
          onInput={(timeRange) => onChange({ ...extent, timeRange })}
          error={failing?.fieldMessage("timeRange")}
        />
      )}
      <Field
        label={`Maximum rows, up to ${formatCount(MAX_ROWS)}`}
        placeholder={DEFAULT_LIMIT}
        value={extent.limit}
        onInput={(limit) => onChange({ ...extent, limit })}
        error={failing?.fieldMessage("limit")}
      />
    </>
  );
}
