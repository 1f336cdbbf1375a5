import type { Signature } from "./signatures.ts";

/** A declared parameter of a warm query; types are Kusto's scalar names. */
export interface QueryParameter {
  name: string;
  type: string;
  default?: unknown;
}

/** The approver of a query, and the time. */
export interface Approval {
  approvedBy: string;
  approvedAt: string;
  signature?: Signature | null;
}

/** The rejection of a draft; the next change of the query removes it. */
export interface Rejection {
  rejectedBy: string;
  rejectedAt: string;
  comment: string;
  signature?: Signature | null;
}

/** A warm query as `GET /oi-api/warm-queries` lists it. */
export interface WarmQuery {
  /** ETag of the definition, for If-Match. */
  etag: string;
  lookup: string;
  apiPath: string | null;
  name: string;
  description: string | null;
  surface: string;
  kql: string;
  parameters: QueryParameter[];
  cacheSeconds: number;
  /** Columns of the result; null until the first run. */
  schema: { columns: QueryColumn[] } | null;
  createdAt: string;
  updatedAt: string;
  /** The last editor, who cannot approve the query. */
  editedBy: string;
  approval: Approval | null;
  rejection?: Rejection | null;
}

/** A result column, with the Kusto name of its type. */
export interface QueryColumn {
  name: string;
  type: string;
}

/** The result of a query, warm or ad hoc. */
/** What the operator `render` of a query states. */
export interface Visualization {
  visualization: string;
  xColumn: string | null;
  yColumns: readonly string[] | null;
  anomalyColumns: readonly string[] | null;
}

export interface QueryResult {
  query: string;
  executedAt: string;
  results: Record<string, unknown>[];
  columns: QueryColumn[];
  rowCount: number;
  truncated: boolean;
  executionTimeMs: number;
  /** Whether the rows are from the cache; present if the query permits caching. */
  fromCache?: boolean;
  asOf?: string;
  governance: { queryApprovedBy: string | null; queryApprovedAt: string | null };
  /** Present if the query has the operator `render`. */
  visualization?: Visualization | null;
}
