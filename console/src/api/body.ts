import { ApiError, isAbort } from "./problem.ts";

/**
 * Reads the JSON of an answer; undefined where its body is empty.
 * @param needed an empty body is as bad as one that is no JSON
 * @throws ApiError where the body is no JSON, or is cut off
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

/** Reads the body of an answer; a connection that is cut meanwhile is an ApiError. */
export async function readBody<T>(reply: Response, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw isAbort(error) ? error : createConnectionError(reply);
  }
}

function createUnreadableError(reply: Response): ApiError {
  const detail =
    "The answer is not what the service writes: it is cut short, or something in between, such as a proxy, answered.";
  return createError(reply, "ANSWER_UNREADABLE", detail);
}

function createConnectionError(reply: Response): ApiError {
  return createError(reply, "ANSWER_CUT", "The connection was cut while the answer was on its way. Try again.");
}

function createError({ status, headers }: Response, code: string, detail: string): ApiError {
  return new ApiError({ status, code, detail, requestId: headers.get("x-request-id") ?? "" });
}
