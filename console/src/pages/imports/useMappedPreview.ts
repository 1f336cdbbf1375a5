import { useState } from "preact/hooks";
import type { ImportMapping, ImportPreview } from "@/api/imports.ts";
import { previewImport } from "./calls.ts";

/** The mapping of a file's columns, and the preview of the messages to which it leads. */
export interface MappedPreview {
  mapping: ImportMapping;
  change: (mapping: ImportMapping) => void;
  /** Undefined unless it shows the result of the current mapping. */
  preview: ImportPreview | undefined;
  /** Whether the mapping has changed since the preview. */
  isOutdated: boolean;
  /** Columns that the latest preview found; empty before it. */
  columns: readonly string[];
  /** Fetches the preview of an import whose file is uploaded. */
  load: (importId: string) => Promise<void>;
  /** Removes the preview. */
  clear: () => void;
}

/**
 * Holds a mapping and its preview. Stored messages cannot be changed, so a mapping may be imported only if its preview
 * is visible.
 */
export function useMappedPreview(first: ImportMapping): MappedPreview {
  const [mapping, change] = useState(first);
  const [latest, setLatest] = useState<{ mapping: ImportMapping; preview: ImportPreview }>();
  const preview = latest?.mapping === mapping ? latest.preview : undefined;
  return {
    ...{ mapping, change, preview },
    isOutdated: latest !== undefined && !preview,
    columns: latest?.preview.columns ?? [],
    load: async (importId) => setLatest({ mapping, preview: await previewImport(importId, mapping) }),
    clear: () => setLatest(undefined),
  };
}
