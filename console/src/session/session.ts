import { Client } from "@/api/client.ts";
import {
  fetchIdentity,
  fetchIdentityAt,
  type Identity,
  type IdentityAt,
  type IssuedToken,
  issueToken,
  issueTokenWithoutSignIn,
} from "@/api/keys.ts";
import { ApiError } from "@/api/problem.ts";
import { clearUsage } from "@/api/usage.ts";
import { type EntraReply, type EntraToken, redeemCode } from "./entra.ts";
import type { Right } from "./rights.ts";
import { clearStorage, forgetToken, kept, storeSession } from "./storage.ts";

/** An active session. */
export interface SignedIn {
  state: "in";
  who: Identity;
  expiresAt: Date;
  /** Number of the session in this tab; a renewal does not change it. */
  number: number;
}

/** A session that ended by itself. Its page stays, with everything typed, until the same user signs in again. */
export type HeldSession = Pick<SignedIn, "who" | "number">;

/** No session; `reason` is why the last one ended or failed. */
export interface SignedOut {
  state: "out";
  reason: ApiError | undefined;
  held?: HeldSession | undefined;
}

/** A sign-in is in progress. */
export interface Starting {
  state: "starting";
  held?: HeldSession | undefined;
}

export type SessionState = SignedIn | SignedOut | Starting;

/** Result of a sign-in. */
interface Opening {
  token: string;
  expiresAt?: string | undefined;
  key?: string;
  entra?: EntraToken;
}

const KEY_PREFIX = "oik_";
/** Characters of keys and tokens, all valid in a header. */
const CREDENTIAL = /^[\x21-\x7e]+$/;
const TOKEN_MINUTES = 60;
const ENTRA_MINUTES = 480;
const RENEW_BEFORE_SECONDS = 300;
const RETRY_SECONDS = 30;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** Smaller differences of the clocks are ignored: the Date of a reply has whole seconds, and the reply takes time. */
const DATE_PRECISION_MS = 2000;

/** The session. Each sign-in method has a function: key, token, code of a link, reply of Entra ID. */
export class Session {
  #state: SessionState = { state: "starting" };
  #token: string | undefined;
  /** Only in memory, never in storage, because it outlives every token. */
  #key: string | undefined;
  /** Only in memory, because it can issue tokens that outlive the session. */
  #entra: EntraToken | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;
  /** Incremented when a session ends, to ignore its pending work. */
  #generation = 0;
  /** Number of the current session; a new sign-in of the same user after an expiry continues it. */
  #number = 0;
  #held: HeldSession | undefined;
  /** Milliseconds by which this machine's clock is ahead of the service's, which decides when credentials end. */
  #ahead = 0;
  /** Incremented by each sign-in and sign-out: only the newest attempt counts. */
  #tries = 0;
  readonly #listeners = new Set<() => void>();
  readonly api: Client = new Client({
    token: () => this.#token,
    workspace: () => (this.#state.state === "in" ? (this.#state.who.workspace ?? "") : ""),
    refused: (error, token) => this.#handleRejectedToken(error, token),
    locked: () => (this.#held ? createExpiredError() : undefined),
    replied: (at) => this.#compareClocks(at),
  });

  get state(): SessionState {
    return this.#state;
  }

  /** Returns the time by the service's clock, from which this machine's can differ by hours. */
  now(): Date {
    return new Date(Date.now() - this.#ahead);
  }

  /** Calls a listener after each change; returns the function that unsubscribes it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Restores the session after a reload; if the service does not respond, the next reload tries again. */
  async restore(): Promise<void> {
    const found = kept(new Date());
    if (!found) {
      this.#change({ state: "out", reason: undefined });
      return;
    }
    const mine = this.#beginAttempt();
    try {
      const who = await fetchIdentityAt(createClient(found.token));
      if (mine()) {
        this.#storeToken(found.token, found.expiresAt, who);
      }
    } catch (error) {
      if (mine()) {
        this.#handleRestoreFailure(describeError(error));
      }
    }
  }

  #handleRestoreFailure(reason: ApiError): void {
    if (reason.status === 401) {
      this.#end(reason);
    } else {
      this.#change({ state: "out", reason });
    }
  }

  /** Signs in with a pasted API key or token. */
  async signInWithCredential(text: string): Promise<void> {
    if (!CREDENTIAL.test(text)) {
      await this.#attempt(() => Promise.reject(createCredentialError()));
    } else {
      await (text.startsWith(KEY_PREFIX) ? this.signInWithKey(text) : this.signInWithToken(text));
    }
  }

  /** Signs in with an API key: exchanges it for a token, and renews that while the page is open. */
  async signInWithKey(key: string): Promise<void> {
    await this.#attempt(async () => {
      const minted = await issueToken(createClient(key), TOKEN_MINUTES);
      return { token: minted.Token, expiresAt: minted.ExpiresAt, key };
    });
  }

  /** Signs in with a token; the session ends when it expires. */
  async signInWithToken(token: string): Promise<void> {
    await this.#attempt(() => Promise.resolve({ token }));
  }

  /**
   * Signs in with the one-time code of a sign-in link. A rejected code does not end the current session.
   * @returns why the code was rejected, if the current session continues
   */
  async signInWithCode(code: string): Promise<ApiError | undefined> {
    return await this.#attempt(() => createClient().post<Opening>("/local/sign-in", { code }));
  }

  /** Signs in with the reply of Entra ID, for eight hours. */
  async signInWithEntra(reply: EntraReply): Promise<ApiError | undefined> {
    return await this.#attempt(async () => {
      const entra = await redeemCode(reply);
      const minted = await issueToken(createClient(entra.token), ENTRA_MINUTES);
      return { token: minted.Token, expiresAt: minted.ExpiresAt, entra };
    });
  }

  /**
   * Issues a further token with the sign-in credential, if this page still has it, because a token cannot outlive its issuer.
   * A token of the stored API key proves no sign-in, because the person entered the key earlier.
   * @param scopes the rights of the token; the default is all
   */
  async issueToken(minutes: number, scopes?: readonly Right[]): Promise<IssuedToken> {
    if (this.#key !== undefined) {
      return await issueTokenWithoutSignIn(createClient(this.#key), minutes, scopes);
    }
    const entra = this.#findEntraToken();
    return await issueToken(entra === undefined ? this.api : createClient(entra), minutes, scopes);
  }

  /** Returns the latest possible end of a token from `issueToken`; null without a limit. */
  async longestExpiry(): Promise<string | null> {
    if (this.#key !== undefined) {
      return (await fetchIdentity(createClient(this.#key))).expiresAt;
    }
    const end = this.#state.state === "in" ? this.#state.expiresAt.toISOString() : null;
    return this.#findEntraToken() === undefined ? end : null;
  }

  /** Returns the token of Entra ID that issued the session's token, if this page has it and it is still valid. */
  #findEntraToken(): string | undefined {
    return this.#entra && this.#entra.endsAt > Date.now() ? this.#entra.token : undefined;
  }

  /** Tells whether the tab still stores this page's session; another page of the tab can have ended or replaced it. */
  isStored(): boolean {
    return kept(new Date())?.token === this.#token;
  }

  signOut(): void {
    this.#tries += 1;
    this.#end(undefined);
  }

  /** Begins a sign-in attempt; returns a function that tells whether it is still the newest. */
  #beginAttempt(): () => boolean {
    this.#tries += 1;
    const mine = this.#tries;
    return () => mine === this.#tries;
  }

  /** Signs in; replaces the current session only after success. */
  async #attempt(work: () => Promise<Opening>): Promise<ApiError | undefined> {
    const mine = this.#beginAttempt();
    const beginning = this.#state.state === "starting";
    if (this.#state.state !== "in") {
      this.#change({ state: "starting", held: this.#held });
    }
    try {
      const opening = await work();
      const who = await fetchIdentityAt(createClient(opening.token));
      if (mine()) {
        this.#replace(opening, who);
      }
      return undefined;
    } catch (error) {
      return mine() ? await this.#handleSignInFailure(describeError(error), beginning) : undefined;
    }
  }

  #replace({ token, expiresAt, key, entra }: Opening, identity: IdentityAt): void {
    if (this.#held && isSameUser(this.#held.who, identity.who)) {
      this.#held = undefined;
    } else {
      // The previous session ends first, so that the next user finds no data of it.
      this.#end(undefined);
    }
    this.#key = key;
    this.#entra = entra;
    this.#storeToken(token, expiresAt, identity);
  }

  /** @param beginning true if the page has just loaded, so the tab may have a stored session */
  async #handleSignInFailure(reason: ApiError, beginning: boolean): Promise<ApiError | undefined> {
    if (this.#state.state !== "in" && beginning && kept(new Date())) {
      await this.restore();
    } else if (this.#state.state !== "in") {
      this.#end(reason);
    }
    return this.#state.state === "in" ? reason : undefined;
  }

  #storeToken(token: string, expiresAt: string | undefined, { who, now }: IdentityAt): void {
    this.#compareClocks(now);
    const end = new Date(expiresAt ?? who.expiresAt ?? now.getTime() + TOKEN_MINUTES * 60_000);
    const until = new Date(end.getTime() + this.#ahead);
    this.#token = token;
    storeSession({ token, expiresAt: end.toISOString(), until: until.toISOString() });
    this.#change({ state: "in", who, expiresAt: end, number: this.#number });
    this.#scheduleRenewal(until);
  }

  /** Compares this machine's clock, which can be corrected at any time, with the service's time of a reply. */
  #compareClocks(at: Date): void {
    const ahead = Date.now() - at.getTime();
    if (Math.abs(ahead - this.#ahead) >= DATE_PRECISION_MS) {
      this.#ahead = Math.abs(ahead) < DATE_PRECISION_MS ? 0 : ahead;
    }
  }

  /** Schedules the renewal of the token, or the end of the session; `end` is by this machine's clock. */
  #scheduleRenewal(end: Date): void {
    clearTimeout(this.#renewal);
    const left = end.getTime() - Date.now();
    const wait = this.#key === undefined ? left : Math.max(left - RENEW_BEFORE_SECONDS * 1000, left / 2);
    this.#renewal = setTimeout(() => void this.#renewOrEnd(end), Math.min(Math.max(wait, 0), LONGEST_TIMER_MS));
  }

  async #renewOrEnd(end: Date): Promise<void> {
    if (Date.now() >= end.getTime()) {
      this.#end(createExpiredError());
    } else if (this.#key === undefined) {
      this.#scheduleRenewal(end);
    } else {
      await this.#renew(this.#key, end);
    }
  }

  async #renew(key: string, end: Date): Promise<void> {
    const generation = this.#generation;
    try {
      const minted = await issueTokenWithoutSignIn(createClient(key), TOKEN_MINUTES);
      const who = await fetchIdentityAt(createClient(minted.Token));
      if (generation === this.#generation) {
        this.#storeToken(minted.Token, minted.ExpiresAt, who);
      }
    } catch (error) {
      if (generation === this.#generation) {
        this.#handleRenewalFailure(error, end);
      }
    }
  }

  #handleRenewalFailure(error: unknown, end: Date): void {
    if (error instanceof ApiError && error.status === 401) {
      this.#end(error);
    } else {
      this.#renewal = setTimeout(() => void this.#renewOrEnd(end), RETRY_SECONDS * 1000);
    }
  }

  /** Ends the session whose token was rejected; ignores late replies to an earlier session. */
  #handleRejectedToken(error: ApiError, token: string | undefined): void {
    if (token !== undefined && token === this.#token) {
      this.#end(error);
    }
  }

  /** Ends the session; without a reason, also everything that the tab remembers of it. */
  #end(reason: ApiError | undefined): void {
    if (reason === undefined) {
      this.#held = undefined;
    } else if (this.#state.state === "in") {
      this.#held = { who: this.#state.who, number: this.#state.number };
    }
    this.#clear();
    this.#change({ state: "out", reason, held: this.#held });
  }

  #clear(): void {
    this.#generation += 1;
    clearTimeout(this.#renewal);
    this.#token = undefined;
    this.#key = undefined;
    this.#entra = undefined;
    clearUsage();
    if (this.#held) {
      forgetToken();
    } else {
      this.#number = this.#generation;
      clearStorage();
    }
  }

  #change(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

/** Tells whether a sign-in continues the page of an ended session; tokens without a user identity never do. */
function isSameUser(before: Identity, now: Identity): boolean {
  return now.principal !== null && before.principal === now.principal && before.workspace === now.workspace;
}

/** Creates a client for sign-in calls with a given credential; a rejection ends no session. */
function createClient(credential?: string): Client {
  return new Client({ token: () => credential, workspace: () => "", refused: () => undefined });
}

function createExpiredError(): ApiError {
  return new ApiError({ status: 401, code: "SESSION_ENDED", detail: "The session has ended. Sign in again." });
}

function createCredentialError(): ApiError {
  const detail =
    "This is not an API key or token. Keys and tokens contain only ASCII characters and no spaces. Copy it again.";
  return new ApiError({ status: 0, code: "NO_CREDENTIAL", detail });
}

function describeError(error: unknown): ApiError {
  return error instanceof ApiError ? error : toApiError(error);
}

function toApiError(error: unknown): ApiError {
  return new ApiError({ status: 0, code: "CONSOLE_FAILED", detail: String(error) });
}
