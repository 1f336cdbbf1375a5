import { parseExactMessages } from "@/api/exactNumbers.ts";
import type { CreatedImport, HistoryImport, ImportFormat, ImportMapping, ImportPreview } from "@/api/imports.ts";
import { api, formatPath } from "@/api/index.ts";
import { ApiError } from "@/api/problem.ts";
import { hasFailed } from "@/components/jobs.ts";

export interface ImportRequest {
  format: ImportFormat;
  fileName: string;
  bytes: number;
  mapping: ImportMapping;
}

/** Creates an import. A repeat with the same idempotency key returns the same import. */
export function createImport(
  connection: string,
  request: ImportRequest,
  idempotencyKey: string,
): Promise<CreatedImport> {
  const headers = { "Idempotency-Key": idempotencyKey };
  return api.post<CreatedImport>(formatPath`/oi-api/imports/data-connections/${connection}`, request, { headers });
}

export function previewImport(id: string, mapping: ImportMapping): Promise<ImportPreview> {
  const path = formatPath`/oi-api/imports/${id}/preview`;
  return api.post<ImportPreview>(path, { mapping }, { parse: parseExactMessages });
}

export function startImport(id: string, mapping: ImportMapping): Promise<HistoryImport> {
  return api.post<HistoryImport>(formatPath`/oi-api/imports/${id}/start`, { mapping });
}

export async function fetchImports(signal: AbortSignal): Promise<HistoryImport[]> {
  return (await api.get<{ imports: HistoryImport[] }>("/oi-api/imports", { signal })).imports;
}

export function fetchImport(id: string): Promise<HistoryImport> {
  return api.get<HistoryImport>(formatPath`/oi-api/imports/${id}`);
}

/** Tells whether an import exists and was neither cancelled nor failed. */
export async function isImportUsable(id: string): Promise<boolean> {
  try {
    return !hasFailed(await fetchImport(id));
  } catch (error) {
    // The service removes an import that was not started within a day.
    if (error instanceof ApiError && error.status === 404) {
      return false;
    }
    throw error;
  }
}

export function cancelImport(id: string): Promise<void> {
  return api.delete(formatPath`/oi-api/imports/${id}`);
}
