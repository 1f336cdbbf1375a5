import { ApiError, isAbort } from "./problem.ts";

/**
 * Parses the JSON body of a reply; returns undefined if the body is empty.
 * @param needed treats an empty body as an error, too
 * @throws ApiError if the body is not valid JSON, or the connection broke
 */
export async function readJson<T>(
  reply: Response,
  needed = true,
  read: (text: string) => unknown = JSON.parse,
): Promise<T> {
  const text = await readBody(reply, () => reply.text());
  if (text === "" && !needed) {
    return undefined as T;
  }
  try {
    return read(text) as T;
  } catch {
    throw createUnreadableError(reply);
  }
}

/** Reads the body of a reply; throws ApiError if the connection breaks. */
export async function readBody<T>(reply: Response, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw isAbort(error) ? error : createConnectionError(reply);
  }
}

function createUnreadableError(reply: Response): ApiError {
  const detail =
    "The reply is not valid JSON. It may be incomplete, or a proxy may have replied instead of the service.";
  return createError(reply, "ANSWER_UNREADABLE", detail);
}

function createConnectionError(reply: Response): ApiError {
  return createError(reply, "ANSWER_CUT", "The connection broke before the reply was complete. Retry.");
}

function createError({ status, headers }: Response, code: string, detail: string): ApiError {
  return new ApiError({ status, code, detail, requestId: headers.get("x-request-id") ?? "" });
}
