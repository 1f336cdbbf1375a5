/** A declared parameter of a warm query; types are Kusto's scalar names. */
export interface QueryParameter {
  name: string;
  type: string;
  default?: unknown;
}

/** Who released a query, and when. */
export interface Approval {
  approvedBy: string;
  approvedAt: string;
}

/** A warm query as `GET /oi-api/warm-queries` lists it. */
export interface WarmQuery {
  /** Names this state of the definition, for If-Match. */
  etag: string;
  lookup: string;
  apiPath: string | null;
  name: string;
  description: string | null;
  surface: string;
  kql: string;
  parameters: QueryParameter[];
  cacheSeconds: number;
  /** Columns that it gives, null until the engine was asked. */
  schema: { columns: QueryColumn[] } | null;
  createdAt: string;
  updatedAt: string;
  /** Who wrote it last, and so does not approve it. */
  editedBy: string;
  approval: Approval | null;
}

/** A column of an answer, with the Kusto name of its type. */
export interface QueryColumn {
  name: string;
  type: string;
}

/** The answer to a query, warm or ad hoc. */
export interface QueryResult {
  query: string;
  executedAt: string;
  results: Record<string, unknown>[];
  columns: QueryColumn[];
  rowCount: number;
  truncated: boolean;
  executionTimeMs: number;
  /** Whether the rows were kept from an earlier run; there where the query lets answers be kept. */
  fromCache?: boolean;
  asOf?: string;
  governance: { queryApprovedBy: string | null; queryApprovedAt: string | null };
}
