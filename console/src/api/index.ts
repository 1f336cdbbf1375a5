import { session } from "@/session/index.ts";

export { readBody, readJson } from "./body.ts";
export { type ApiReply, formatPath, type RequestOptions } from "./client.ts";
export { ApiError, describeError, type FieldError, isAbort, isOutdated } from "./problem.ts";

/** The service's API, called with the session's token. */
export const api = session.api;
