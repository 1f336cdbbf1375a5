import { readJson } from "./body.ts";
import { Places } from "./places.ts";
import { ApiError, createUnreachableError, isAbort, readProblem } from "./problem.ts";
import { recordUsage } from "./usage.ts";

export type QueryValue = string | number | boolean | null | undefined;

export interface RequestOptions {
  /** Query parameters; null, undefined and empty values are not sent. */
  query?: Record<string, QueryValue>;
  headers?: Record<string, string>;
  /** Aborts the request; the promise then rejects with an AbortError. */
  signal?: AbortSignal;
  /** Parses the JSON body; the default is JSON.parse, which rounds whole numbers beyond 2^53. */
  parse?: (text: string) => unknown;
}

/** A reply: status, headers and parsed body. */
export interface ApiReply<T> {
  status: number;
  headers: Headers;
  data: T;
}

export interface Caller {
  /** The token to send; undefined without a session. */
  token(): string | undefined;
  /** The workspace's id, part of the GraphQL address. */
  workspace(): string;
  /** Called if the service rejects the token of a request. */
  refused(error: ApiError, token: string | undefined): void;
  /** The error of all requests while the session has ended and its page waits for a new sign-in. */
  locked?(): ApiError | undefined;
  /** Called with the service's time of each reply. */
  replied?(at: Date): void;
}

const MAX_WAIT_SECONDS = 5;
const MAX_TRIES = 3;
const MAX_TOGETHER = 3;

/** Formats a path with percent-encoded values: formatPath`/oi-api/downloads/${id}`. */
export function formatPath(texts: TemplateStringsArray, ...values: (string | number)[]): string {
  return texts.reduce((path, text, index) => path + encodeURIComponent(String(values[index - 1])) + text);
}

/** Client of the service's public API on this origin, with the session's token. A body is sent as JSON, a Blob as it is. */
export class Client {
  readonly #caller: Caller;
  readonly #places = new Places(MAX_TOGETHER);

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Returns the body of a GET; retries if the service throttles it for a few seconds. */
  async get<T>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>("GET", path, undefined, options)).data;
  }

  async post<T>(path: string, body?: unknown, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>("POST", path, body, options)).data;
  }

  async put<T>(path: string, body: unknown, options: RequestOptions = {}): Promise<T> {
    return (await this.request<T>("PUT", path, body, options)).data;
  }

  async delete(path: string, options: RequestOptions = {}): Promise<void> {
    await this.request<undefined>("DELETE", path, undefined, options);
  }

  /** Returns status, headers and body; `data` is undefined if the body is empty. */
  async request<T>(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<ApiReply<T>> {
    const reply = await this.fetch(method, path, body, options);
    const data = await readJson<T>(reply, method === "GET" && reply.status === 200, options.parse);
    return { status: reply.status, headers: reply.headers, data };
  }

  /** Returns the Response, for bodies other than JSON: CSV, Parquet, HTML. Throws ApiError like the others. */
  async fetch(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Response> {
    for (let tries = 1; ; tries += 1) {
      const locked = this.#caller.locked?.();
      if (locked) {
        throw locked;
      }
      const token = this.#caller.token();
      const reply = await this.#send(method, path, body, options, token);
      if (reply.ok) {
        return reply;
      }
      const error = await readProblem(reply);
      const wait = error.retryAfterSeconds ?? Number.POSITIVE_INFINITY;
      if (reply.status === 429 && method === "GET" && wait <= MAX_WAIT_SECONDS && tries < MAX_TRIES) {
        await sleep(wait, options.signal);
        continue;
      }
      if (reply.status === 401) {
        this.#caller.refused(error, token);
      }
      throw error;
    }
  }

  /** Runs a GraphQL query and returns its data; throws the first of its errors as an ApiError. */
  async graphql<T>(query: string, variables: Record<string, unknown> = {}, signal?: AbortSignal): Promise<T> {
    const options = { headers: { Accept: "application/json" }, ...(signal ? { signal } : {}) };
    const path = formatPath`/v1/${this.#caller.workspace()}/graphql`;
    const answer = await this.request<GraphQLBody<T>>("POST", path, { query, variables }, options);
    const [first] = answer.data?.errors ?? [];
    if (first) {
      const code = first.extensions?.code ?? "GRAPHQL_ERROR";
      const requestId = answer.headers.get("x-request-id") ?? "";
      throw new ApiError({ status: answer.status, code, detail: first.message, requestId });
    }
    return answer.data?.data as T;
  }

  async #send(
    method: string,
    path: string,
    body: unknown,
    options: RequestOptions,
    token: string | undefined,
  ): Promise<Response> {
    const target = buildAddress(path, options.query);
    const headers = new Headers(options.headers);
    if (token !== undefined) {
      headers.set("Authorization", `Bearer ${token}`);
    }
    const init: RequestInit = { method, headers, cache: "no-store", credentials: "omit", redirect: "error" };
    if (body !== undefined) {
      headers.set("Content-Type", body instanceof Blob ? body.type : "application/json");
      init.body = body instanceof Blob ? body : JSON.stringify(body);
    }
    if (options.signal) {
      init.signal = options.signal;
    }
    try {
      const reply = await this.#places.run(() => fetch(target, init), options.signal);
      recordUsage(reply.headers);
      const at = new Date(reply.headers.get("date") ?? Number.NaN);
      if (!Number.isNaN(at.getTime())) {
        this.#caller.replied?.(at);
      }
      return reply;
    } catch (error) {
      throw isAbort(error) ? error : createUnreachableError();
    }
  }
}

interface GraphQLBody<T> {
  data?: T;
  errors?: { message: string; extensions?: { code?: string } }[];
}

function buildAddress(path: string, query: Record<string, QueryValue> = {}): string {
  if (!path.startsWith("/") || path.startsWith("//")) {
    throw new TypeError(`${path} is not a path of this service`);
  }
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? path : `${path}?${text}`;
}

function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}
