import { useState } from "preact/hooks";
import type { Download, DownloadFormat } from "@/api/downloads.ts";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { Panel } from "@/shell/Page.tsx";
import { type Source, startDownload } from "./calls.ts";
import css from "./Downloads.module.css";
import { createRangeUpToNow, PRESETS, toInstant } from "./ranges.ts";
import { SourceFields } from "./SourceFields.tsx";

const FORMATS: readonly { value: DownloadFormat; label: string }[] = [
  { value: "csv", label: "CSV: a column for each field" },
  { value: "jsonl", label: "JSON Lines: original payloads" },
  { value: "parquet", label: "Parquet: compressed, typed" },
];

interface Props {
  /** The initial source. */
  from: Source;
  onStarted: (download: Download, source: Source) => void;
}

/** Starts a download from the form. */
export function Start({ from, onStarted }: Props) {
  const [source, setSource] = useState(from);
  const [format, setFormat] = useState<DownloadFormat>("csv");
  const [range, setRange] = useState(() => createRangeUpToNow(24, new Date()));
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const named = (source.kind === "surface" || source.connection) && (source.kind === "connection" || source.surface);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const dateRange = { start: toInstant(range.start), end: toInstant(range.end) };
      onStarted(await startDownload({ source, format, dateRange }), source);
      showToast("The download was started");
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const of = (field: string) => (error instanceof ApiError ? error.fieldMessage(field) : undefined);
  return (
    <Panel title="New download">
      <form class={css.form} onSubmit={(event) => void submit(event)}>
        <div class={css.fields}>
          <SourceFields source={source} onChange={setSource} />
          <Select label="Format" value={format} options={FORMATS} onChange={setFormat} />
        </div>
        <div class={css.fields}>
          <Field
            label="From"
            type="datetime-local"
            value={range.start}
            error={of("dateRange.start")}
            hint={ZONE}
            onInput={(value) => setRange({ ...range, start: value })}
          />
          <Field
            label="Up to"
            type="datetime-local"
            value={range.end}
            error={of("dateRange.end")}
            hint="Not included; at most 366 days later"
            onInput={(value) => setRange({ ...range, end: value })}
          />
          <fieldset class={css.presets} aria-label="Presets">
            {PRESETS.map(({ label, hours }) => (
              <Button key={label} onClick={() => setRange(createRangeUpToNow(hours, new Date()))}>
                {label}
              </Button>
            ))}
          </fieldset>
        </div>
        {error !== undefined && <ErrorNotice error={error} />}
        <div>
          <Button kind="primary" type="submit" icon="download" busy={busy} disabled={!named}>
            Start download
          </Button>
        </div>
      </form>
    </Panel>
  );
}

const ZONE = `Your time zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
