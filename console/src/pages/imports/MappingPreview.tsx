import type { ComponentChildren } from "preact";
import type { ImportFormat } from "@/api/imports.ts";
import { ApiError, describeError } from "@/api/index.ts";
import { Notice } from "@/components/Notice.tsx";
import { MappingFields } from "./MappingFields.tsx";
import { PreviewPanel } from "./PreviewPanel.tsx";
import type { MappedPreview } from "./useMappedPreview.ts";

interface Props {
  format: ImportFormat;
  mapped: MappedPreview;
  /** Columns of the file before its preview; empty if unknown. */
  columns?: readonly string[];
  error: unknown;
  /** More between the error and the preview, such as the progress of the upload. */
  children?: ComponentChildren;
}

/** Inputs for the meaning of a file's columns, with the preview of its messages. */
export function MappingPreview({ format, mapped, columns = [], error, children }: Props) {
  return (
    <>
      <MappingFields
        format={format}
        mapping={mapped.mapping}
        columns={mapped.columns.length > 0 ? mapped.columns : columns}
        error={error instanceof ApiError ? error : undefined}
        onChange={mapped.change}
      />
      <Failure error={error} />
      {children}
      {mapped.preview && <PreviewPanel preview={mapped.preview} />}
      {mapped.isOutdated && (
        <Notice title="The columns or formats have changed since the preview">Preview again before the import.</Notice>
      )}
    </>
  );
}

function Failure({ error }: { error: unknown }) {
  if (error === undefined) {
    return null;
  }
  return (
    <Notice kind="bad" title="The import cannot continue">
      <p>{describeFailure(error)}</p>
    </Notice>
  );
}

function describeFailure(error: unknown): string {
  if (error instanceof ApiError && error.code === "IMPORT_NOT_UPLOADED") {
    return (
      "The file is not uploaded completely yet. If no page uploads it any more, cancel this import, and choose the file" +
      " again in a new one."
    );
  }
  return error instanceof Error && !(error instanceof ApiError) ? error.message : describeError(error);
}
