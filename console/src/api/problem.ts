/** One failing field of a request, as the service names it. */
export interface FieldError {
  field: string;
  message: string;
}

interface ProblemDetails {
  status: number;
  code: string;
  detail: string;
  requestId?: string;
  errors?: FieldError[];
  retryAfterSeconds?: number;
  members?: Record<string, unknown>;
}

/** What the service refused and why. `code` is stable and to branch on; `detail` is for people. */
export class ApiError extends Error {
  /** HTTP status; 0 where no answer came. */
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly requestId: string;
  readonly errors: readonly FieldError[];
  /** When to ask again, where the service says so. */
  readonly retryAfterSeconds: number | undefined;
  /** The whole problem document, for the members that belong to a code. */
  readonly members: Readonly<Record<string, unknown>>;

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

  /** The message of a field, by its name, undefined where it is not among those that fail. */
  fieldMessage(field: string): string | undefined {
    return this.errors.find((error) => error.field === field)?.message;
  }
}

/** Reads the error that a reply tells of; a reply that is no problem document still gives one. */
export async function readProblem(reply: Response): Promise<ApiError> {
  const members = await readDocument(reply);
  const wait = Number(reply.headers.get("retry-after"));
  return new ApiError({
    status: reply.status,
    code: toText(members.code) || `HTTP_${reply.status}`,
    detail: toText(members.detail) || toText(members.title) || `The service answered ${reply.status}.`,
    requestId: reply.headers.get("x-request-id") ?? toText(members.traceId),
    errors: toFieldErrors(members.errors),
    ...(wait > 0 ? { retryAfterSeconds: wait } : {}),
    members,
  });
}

/** The error of a request that got no answer. */
export function createUnreachableError(): ApiError {
  return new ApiError({
    status: 0,
    code: "UNREACHABLE",
    detail: "The service does not answer. Check that it runs and that this machine reaches it, then try again.",
  });
}

/** Whether nothing was done because somebody else changed the thing after it was read. */
export function isOutdated(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === "PRECONDITION_FAILED";
}

/** Tells an error that means "no longer wanted" from every other. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
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
