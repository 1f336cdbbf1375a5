import { useState } from "preact/hooks";
import type { Download, DownloadFormat } from "@/api/downloads.ts";
import { JobRequests } from "@/api/idempotency.ts";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { DateField } from "@/components/DateField.tsx";
import { Select } from "@/components/Field.tsx";
import { describeStart } from "@/components/jobs.ts";
import { ErrorNotice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { Panel } from "@/shell/Page.tsx";
import { type Source, startDownload } from "./calls.ts";
import css from "./Downloads.module.css";
import { createRangeUpToNow, PRESETS } from "./ranges.ts";
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
  const [saved, setSaved] = useState(range);
  useUnsavedWarning(range !== saved);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [requests] = useState(() => new JobRequests());
  const named = (source.kind === "surface" || source.connection) && (source.kind === "connection" || source.surface);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const request = { source, format, dateRange: range };
      const download = await requests.run(request, (key) => startDownload(request, key));
      onStarted(download, source);
      setSaved(range);
      showToast(describeStart("download", download));
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
          <DateField
            label="From"
            value={range.start}
            error={of("dateRange.start")}
            onInput={(start) => setRange({ ...range, start })}
          />
          <DateField
            label="Up to"
            value={range.end}
            error={of("dateRange.end")}
            hint="this moment is not included; at most 366 days after the start"
            onInput={(end) => setRange({ ...range, end })}
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
