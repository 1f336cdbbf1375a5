import { ApiError, isAbort } from "./problem.ts";

/**
 * Reads the JSON of an answer; undefined where its body is empty.
 * @param needed an empty body is as bad as one that is no JSON
 * @throws ApiError where the body is no JSON, or is cut off
 */
export async function jsonOf<T>(
  reply: Response,
  needed = true,
  read: (text: string) => unknown = JSON.parse,
): Promise<T> {
  const text = await whole(reply, () => reply.text());
  if (text === "" && !needed) {
    return undefined as T;
  }
  try {
    return read(text) as T;
  } catch {
    throw unreadable(reply);
  }
}

/** Reads the body of an answer; a connection that is cut meanwhile is an ApiError. */
export async function whole<T>(reply: Response, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw isAbort(error) ? error : cut(reply);
  }
}

function unreadable(reply: Response): ApiError {
  const detail =
    "The answer is not what the service writes: it is cut short, or something in between, such as a proxy, answered.";
  return failure(reply, "ANSWER_UNREADABLE", detail);
}

function cut(reply: Response): ApiError {
  return failure(reply, "ANSWER_CUT", "The connection was cut while the answer was on its way. Try again.");
}

function failure({ status, headers }: Response, code: string, detail: string): ApiError {
  return new ApiError({ status, code, detail, requestId: headers.get("x-request-id") ?? "" });
}
