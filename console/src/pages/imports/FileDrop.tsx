import { useId, useState } from "preact/hooks";
import { joinClasses } from "@/components/classes.ts";
import { formatBytes } from "@/format.ts";
import css from "./Imports.module.css";

interface Props {
  file: File | undefined;
  disabled: boolean;
  onChoose: (file: File) => void;
}

/** An area that takes a file by drag and drop, or by its button. */
export function FileDrop({ file, disabled, onChoose }: Props) {
  const id = useId();
  const [over, setOver] = useState(false);
  const take = (files: FileList | null | undefined) => {
    const [first] = files ?? [];
    if (first && !disabled) {
      onChoose(first);
    }
  };
  return (
    <fieldset
      aria-label="File"
      class={joinClasses(css.drop, over && css.over)}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      <label for={id}>
        {file ? `${file.name}, ${formatBytes(file.size)}` : "Drop a CSV, NDJSON or Parquet file here, or choose one"}
      </label>
      <input
        id={id}
        type="file"
        accept=".csv,.tsv,.txt,.ndjson,.jsonl,.parquet"
        disabled={disabled}
        onClick={(event) => {
          // Browsers report no change if the same file is chosen again.
          event.currentTarget.value = "";
        }}
        onChange={(event) => take(event.currentTarget.files)}
      />
    </fieldset>
  );
}
