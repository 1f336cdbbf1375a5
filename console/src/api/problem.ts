/** An invalid field of a request, by the service's name. */
export interface FieldError {
  field: string;
  message: string;
  /** Position in a document, both from 1. */
  line?: number;
  column?: number;
}

/** Code of a request without a reply. */
const UNREACHABLE = "UNREACHABLE";

interface ProblemDetails {
  status: number;
  code: string;
  detail: string;
  requestId?: string;
  errors?: FieldError[];
  retryAfterSeconds?: number;
  members?: Record<string, unknown>;
}

/** Error reply of the service. Programs use the stable `code`; `detail` is for people. */
export class ApiError extends Error {
  /** HTTP status; 0 without a reply. */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly requestId: string;
  readonly errors: readonly FieldError[];
  /** Seconds until a retry, if the reply has them. */
  readonly retryAfterSeconds: number | undefined;
  /** The whole problem document; some codes have properties of their own. */
  readonly members: Readonly<Record<string, unknown>>;
  /**
   * Whether the caller's own earlier attempt possibly caused this refusal, because the outcome of that attempt is
   * unknown.
   */
  isPossiblyOwn = false;

  constructor(told: ProblemDetails) {
    super(told.detail);
    this.name = "ApiError";
    this.status = told.status;
    this.code = told.code;
    this.detail = told.detail;
    this.requestId = told.requestId ?? "";
    this.errors = told.errors ?? [];
    this.retryAfterSeconds = told.retryAfterSeconds;
    this.members = told.members ?? {};
  }

  /** Returns the message of an invalid field; undefined if the field is valid. */
  fieldMessage(field: string): string | undefined {
    return this.errors.find((error) => error.field === field)?.message;
  }
}

/** Converts an error reply to an ApiError, with or without a problem document. */
export async function readProblem(reply: Response): Promise<ApiError> {
  const members = await readDocument(reply);
  const wait = Number(reply.headers.get("retry-after"));
  return new ApiError({
    status: reply.status,
    code: toText(members.code) || `HTTP_${reply.status}`,
    detail: toText(members.detail) || toText(members.title) || `The service replied with status ${reply.status}.`,
    requestId: reply.headers.get("x-request-id") ?? toText(members.traceId),
    errors: toFieldErrors(members.errors),
    ...(wait > 0 ? { retryAfterSeconds: wait } : {}),
    members,
  });
}

/** Creates the error of a request without a reply. */
export function createUnreachableError(): ApiError {
  return new ApiError({
    status: 0,
    code: UNREACHABLE,
    detail: "The service does not respond. Check that it runs and that this machine can reach it, then try again.",
  });
}

/** Tells whether the service rejected a write because the resource changed since it was read. */
export function isOutdated(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === "PRECONDITION_FAILED";
}

/** Tells whether a change was possibly made although its request failed: its reply was lost, or the service failed. */
export function isOutcomeUnknown(error: unknown): boolean {
  if (!(error instanceof ApiError)) {
    return true;
  }
  const { code, status } = error;
  const isRunning = code === "IDEMPOTENCY_KEY_IN_USE";
  return isRunning || code === UNREACHABLE || status >= 500 || (status >= 200 && status < 300);
}

/** Returns an error in one line, with the code and the request's id. */
export function describeError(error: unknown): string {
  return error instanceof ApiError ? `${error.detail} (${error.code}, ${error.requestId})` : String(error);
}

/** Tells whether an error is the abort of a request. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/**
 * Tells whether the service would reject a repetition of the request, too: an error 4xx except 401, which a new sign-in
 * ends, and 429.
 */
export function isPermanent(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && ![401, 429].includes(error.status);
}

async function readDocument(reply: Response): Promise<Record<string, unknown>> {
  try {
    const value: unknown = await reply.json();
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function toFieldErrors(value: unknown): FieldError[] {
  const entries: unknown[] = Array.isArray(value) ? value : [];
  return entries.filter(isFieldError);
}

function isFieldError(entry: unknown): entry is FieldError {
  return (
    typeof entry === "object" &&
    entry !== null &&
    "field" in entry &&
    "message" in entry &&
    typeof entry.field === "string"
  );
}

/** Returns whether a request failed because the workspace keeps no audit log. */
export function isWithoutAuditLog(error: unknown): boolean {
  return error instanceof ApiError && error.code === "PROVENANCE_NOT_PROVISIONED";
}
