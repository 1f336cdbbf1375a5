import { Client } from "@/api/client.ts";
import { type Minted, mint, type Who, whoami } from "@/api/keys.ts";
import { ApiError } from "@/api/problem.ts";
import { forgetUsage } from "@/api/usage.ts";
import { type EntraReply, type EntraToken, redeem } from "./entra.ts";
import type { Right } from "./rights.ts";
import { forget, keep, kept } from "./storage.ts";

/** Who is signed in, and until when. */
export interface SignedIn {
  state: "in";
  who: Who;
  expiresAt: Date;
}

/** Nobody is signed in; `reason` is what ended or prevented it. */
export interface SignedOut {
  state: "out";
  reason: ApiError | undefined;
}

/** A credential is being looked at. */
export interface Starting {
  state: "starting";
}

export type SessionState = SignedIn | SignedOut | Starting;

const KEY_PREFIX = "oik_";
const TOKEN_MINUTES = 60;
const ENTRA_MINUTES = 480;
const RENEW_BEFORE_SECONDS = 300;
const RETRY_SECONDS = 30;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Who is signed in. Each way to sign in is a method: a key, a token, the code of a link, an answer of Entra ID.
 */
export class Session {
  #state: SessionState = { state: "starting" };
  #token: string | undefined;
  /** Stays here and nowhere else: it outlives every token, so that storage must not see it. */
  #key: string | undefined;
  /** Stays here, too: it makes tokens that outlive the session. */
  #entra: EntraToken | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;
  readonly #listeners = new Set<() => void>();
  readonly api: Client = new Client({
    token: () => this.#token,
    workspace: () => (this.#state.state === "in" ? (this.#state.who.workspace ?? "") : ""),
    refused: (error) => this.#end(error),
  });

  get state(): SessionState {
    return this.#state;
  }

  /** Calls a listener after each change; gives what ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Takes up what the tab kept over a reload; where the service does not answer, the next reload tries again. */
  async restore(): Promise<void> {
    const found = kept(new Date());
    if (!found) {
      this.#change({ state: "out", reason: undefined });
      return;
    }
    try {
      await this.#begin(found.token, found.expiresAt);
    } catch (error) {
      const reason = error instanceof ApiError ? error : unexpected(error);
      if (reason.status === 401) {
        this.#end(reason);
      } else {
        this.#change({ state: "out", reason });
      }
    }
  }

  /** Signs in with what somebody pasted: an API key or a token. */
  async withCredential(text: string): Promise<void> {
    await (text.startsWith(KEY_PREFIX) ? this.withKey(text) : this.withToken(text));
  }

  /** Signs in with an API key, which is exchanged for a token and renews it as long as the page stays open. */
  async withKey(key: string): Promise<void> {
    await this.#attempt(async () => {
      const minted = await exchange(key);
      this.#key = key;
      await this.#begin(minted.Token, minted.ExpiresAt);
    });
  }

  /** Signs in with a token; the session ends with it. */
  async withToken(token: string): Promise<void> {
    await this.#attempt(() => this.#begin(token, undefined));
  }

  /** Signs in with the one-time code of a link that the local host printed. */
  async withCode(code: string): Promise<void> {
    await this.#attempt(async () => {
      const given = await bare().post<{ token: string; expiresAt: string }>("/local/sign-in", { code });
      await this.#begin(given.token, given.expiresAt);
    });
  }

  /** Signs in with what Entra ID sent back, for eight hours. */
  async withEntra(reply: EntraReply): Promise<void> {
    await this.#attempt(async () => {
      const entra = await redeem(reply);
      const minted = await mint(bare(entra.token), ENTRA_MINUTES);
      this.#entra = entra;
      await this.#begin(minted.Token, minted.ExpiresAt);
    });
  }

  /**
   * Makes a further token: with what signed in, where this page still holds it, as no token outlives the token that asks.
   * @param scopes the rights to carry, all of them when left out
   */
  async mint(minutes: number, scopes?: readonly Right[]): Promise<Minted> {
    const source = this.#source();
    return await mint(source === undefined ? this.api : bare(source), minutes, scopes);
  }

  /** Tells when the longest token that `mint` can make now would end; null where nothing but its lifetime ends it. */
  async longest(): Promise<string | null> {
    if (this.#key !== undefined) {
      return (await whoami(bare(this.#key))).expiresAt;
    }
    const end = this.#state.state === "in" ? this.#state.expiresAt.toISOString() : null;
    return this.#source() === undefined ? end : null;
  }

  /** The credential behind the session's token, where this page holds it and it is good for more. */
  #source(): string | undefined {
    const entra = this.#entra && this.#entra.endsAt > Date.now() ? this.#entra.token : undefined;
    return this.#key ?? entra;
  }

  signOut(): void {
    this.#end(undefined);
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    this.#clear();
    this.#change({ state: "starting" });
    try {
      await work();
    } catch (error) {
      this.#end(error instanceof ApiError ? error : unexpected(error));
    }
  }

  async #begin(token: string, expiresAt: string | undefined): Promise<void> {
    const who = await whoami(bare(token));
    const end = expiresAt ?? who.expiresAt ?? new Date(Date.now() + TOKEN_MINUTES * 60_000).toISOString();
    this.#token = token;
    keep({ token, expiresAt: end });
    this.#change({ state: "in", who, expiresAt: new Date(end) });
    this.#plan(new Date(end));
  }

  /** Renews the token before its end from the key, or ends the session with it. */
  #plan(end: Date): void {
    clearTimeout(this.#renewal);
    const left = end.getTime() - Date.now();
    const wait = this.#key === undefined ? left : Math.max(left - RENEW_BEFORE_SECONDS * 1000, left / 2);
    this.#renewal = setTimeout(() => void this.#due(end), Math.min(Math.max(wait, 0), LONGEST_TIMER_MS));
  }

  async #due(end: Date): Promise<void> {
    if (this.#key === undefined || Date.now() >= end.getTime()) {
      this.#end(expired());
      return;
    }
    try {
      const minted = await exchange(this.#key);
      await this.#begin(minted.Token, minted.ExpiresAt);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.#end(error);
      } else {
        this.#renewal = setTimeout(() => void this.#due(end), RETRY_SECONDS * 1000);
      }
    }
  }

  #end(reason: ApiError | undefined): void {
    this.#clear();
    this.#change({ state: "out", reason });
  }

  #clear(): void {
    clearTimeout(this.#renewal);
    this.#token = undefined;
    this.#key = undefined;
    this.#entra = undefined;
    forget();
    forgetUsage();
  }

  #change(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

/** A client for the calls that sign in: it sends what it is given, and a refusal ends no session. */
function bare(credential?: string): Client {
  return new Client({ token: () => credential, workspace: () => "", refused: () => undefined });
}

function exchange(key: string): Promise<Minted> {
  return mint(bare(key), TOKEN_MINUTES);
}

function expired(): ApiError {
  return new ApiError({ status: 401, code: "SESSION_ENDED", detail: "The session has ended. Sign in again." });
}

function unexpected(error: unknown): ApiError {
  return new ApiError({ status: 0, code: "CONSOLE_FAILED", detail: String(error) });
}
