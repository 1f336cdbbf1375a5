import { DateField } from "./DateField.tsx";
import { Select } from "./Field.tsx";
import { BETWEEN, checkRange, createRange, isIncomplete, type PastRange } from "./pastRanges.ts";

interface Props {
  label: string;
  range: PastRange;
  /** Presets: seconds up to now, or "all". */
  presets: readonly { value: string; label: string }[];
  onChange: (range: PastRange) => void;
}

/** Inputs for a range of the past: a preset, or from one instant to another. */
export function PastRangeFields({ label, range, presets, onChange }: Props) {
  return (
    <>
      <Select
        label={label}
        value={range.preset}
        options={[...presets, { value: BETWEEN, label: "From … to …" }]}
        onChange={(preset) => onChange(createRange(preset))}
      />
      {range.preset === BETWEEN && (
        <>
          <DateField
            label="From"
            value={range.from}
            onInput={(from) => onChange({ ...range, from })}
            error={isIncomplete(range) ? undefined : checkRange(range)}
          />
          <DateField
            label="To"
            hint="this moment is not included"
            value={range.to}
            onInput={(to) => onChange({ ...range, to })}
          />
        </>
      )}
    </>
  );
}
