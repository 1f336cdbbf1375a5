import { Client } from "@/api/client.ts";
import {
  fetchIdentity,
  fetchIdentityAt,
  type Identity,
  type IdentityAt,
  type IssuedToken,
  issueToken,
} from "@/api/keys.ts";
import { ApiError } from "@/api/problem.ts";
import { clearUsage } from "@/api/usage.ts";
import { type EntraReply, type EntraToken, redeemCode } from "./entra.ts";
import type { Right } from "./rights.ts";
import { clearStorage, kept, storeSession } from "./storage.ts";

/** Who is signed in, and until when. */
export interface SignedIn {
  state: "in";
  who: Identity;
  expiresAt: Date;
  /** Tells sessions of the tab apart; a renewal keeps it. */
  number: number;
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

/** What a way to sign in gave. */
interface Opening {
  token: string;
  expiresAt?: string | undefined;
  key?: string;
  entra?: EntraToken;
}

const KEY_PREFIX = "oik_";
/** What keys and tokens are written with, and what a header takes. */
const CREDENTIAL = /^[\x21-\x7e]+$/;
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
  /** Raised by whatever ends a session: what was under way for it is of no use then. */
  #generation = 0;
  /** Raised by each try to sign in, and by signing out: only the newest try counts. */
  #tries = 0;
  readonly #listeners = new Set<() => void>();
  readonly api: Client = new Client({
    token: () => this.#token,
    workspace: () => (this.#state.state === "in" ? (this.#state.who.workspace ?? "") : ""),
    refused: (error, token) => this.#handleRejectedToken(error, token),
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

  /** Signs in with what somebody pasted: an API key or a token. */
  async signInWithCredential(text: string): Promise<void> {
    if (!CREDENTIAL.test(text)) {
      await this.#attempt(() => Promise.reject(createCredentialError()));
    } else {
      await (text.startsWith(KEY_PREFIX) ? this.signInWithKey(text) : this.signInWithToken(text));
    }
  }

  /** Signs in with an API key, which is exchanged for a token and renews it as long as the page stays open. */
  async signInWithKey(key: string): Promise<void> {
    await this.#attempt(async () => {
      const minted = await exchangeKey(key);
      return { token: minted.Token, expiresAt: minted.ExpiresAt, key };
    });
  }

  /** Signs in with a token; the session ends with it. */
  async signInWithToken(token: string): Promise<void> {
    await this.#attempt(() => Promise.resolve({ token }));
  }

  /**
   * Signs in with the one-time code of a link that the local host printed. A code that is not taken ends no session.
   * @returns why the code was not taken, where somebody stays signed in all the same
   */
  async signInWithCode(code: string): Promise<ApiError | undefined> {
    return await this.#attempt(() => createClient().post<Opening>("/local/sign-in", { code }));
  }

  /** Signs in with what Entra ID sent back, for eight hours. */
  async signInWithEntra(reply: EntraReply): Promise<ApiError | undefined> {
    return await this.#attempt(async () => {
      const entra = await redeemCode(reply);
      const minted = await issueToken(createClient(entra.token), ENTRA_MINUTES);
      return { token: minted.Token, expiresAt: minted.ExpiresAt, entra };
    });
  }

  /**
   * Makes a further token: with what signed in, where this page still holds it, as no token outlives the token that asks.
   * @param scopes the rights to carry, all of them when left out
   */
  async issueToken(minutes: number, scopes?: readonly Right[]): Promise<IssuedToken> {
    const source = this.#findSource();
    return await issueToken(source === undefined ? this.api : createClient(source), minutes, scopes);
  }

  /** Tells when the longest token that `mint` can make now would end; null where nothing but its lifetime ends it. */
  async longestExpiry(): Promise<string | null> {
    if (this.#key !== undefined) {
      return (await fetchIdentity(createClient(this.#key))).expiresAt;
    }
    const end = this.#state.state === "in" ? this.#state.expiresAt.toISOString() : null;
    return this.#findSource() === undefined ? end : null;
  }

  /** The credential behind the session's token, where this page holds it and it is good for more. */
  #findSource(): string | undefined {
    const entra = this.#entra && this.#entra.endsAt > Date.now() ? this.#entra.token : undefined;
    return this.#key ?? entra;
  }

  signOut(): void {
    this.#tries += 1;
    this.#end(undefined);
  }

  /** Begins a try to sign in; gives what tells whether it is still the newest. */
  #beginAttempt(): () => boolean {
    this.#tries += 1;
    const mine = this.#tries;
    return () => mine === this.#tries;
  }

  /** Tries to sign in, and puts the new session in the place of the one that runs only once it is there. */
  async #attempt(work: () => Promise<Opening>): Promise<ApiError | undefined> {
    const mine = this.#beginAttempt();
    const beginning = this.#state.state === "starting";
    if (this.#state.state !== "in") {
      this.#change({ state: "starting" });
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

  #replace({ token, expiresAt, key, entra }: Opening, who: IdentityAt): void {
    // Whoever was signed in is out first, so that nothing of theirs is left for the next one.
    this.#end(undefined);
    this.#key = key;
    this.#entra = entra;
    this.#storeToken(token, expiresAt, who);
  }

  /** @param beginning the page was just opened, so that the tab may have kept a session */
  async #handleSignInFailure(reason: ApiError, beginning: boolean): Promise<ApiError | undefined> {
    if (this.#state.state !== "in" && beginning && kept(new Date())) {
      await this.restore();
    } else if (this.#state.state !== "in") {
      this.#end(reason);
    }
    return this.#state.state === "in" ? reason : undefined;
  }

  #storeToken(token: string, expiresAt: string | undefined, { who, now }: IdentityAt): void {
    // The service's clock says when a token ends; this machine's may be hours off.
    const ahead = Date.now() - now.getTime();
    const end = new Date(expiresAt ?? who.expiresAt ?? now.getTime() + TOKEN_MINUTES * 60_000);
    const until = new Date(end.getTime() + ahead);
    this.#token = token;
    storeSession({ token, expiresAt: end.toISOString(), until: until.toISOString() });
    this.#change({ state: "in", who, expiresAt: end, number: this.#generation });
    this.#scheduleRenewal(until);
  }

  /** Renews the token before its end from the key, or ends the session with it; `end` is by this machine's clock. */
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
      const minted = await exchangeKey(key);
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

  /** Ends the session whose token was refused; a late answer to an earlier one's ends nothing. */
  #handleRejectedToken(error: ApiError, token: string | undefined): void {
    if (token !== undefined && token === this.#token) {
      this.#end(error);
    }
  }

  #end(reason: ApiError | undefined): void {
    this.#clear();
    this.#change({ state: "out", reason });
  }

  #clear(): void {
    this.#generation += 1;
    clearTimeout(this.#renewal);
    this.#token = undefined;
    this.#key = undefined;
    this.#entra = undefined;
    clearStorage();
    clearUsage();
  }

  #change(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

/** A client for the calls that sign in: it sends what it is given, and a refusal ends no session. */
function createClient(credential?: string): Client {
  return new Client({ token: () => credential, workspace: () => "", refused: () => undefined });
}

function exchangeKey(key: string): Promise<IssuedToken> {
  return issueToken(createClient(key), TOKEN_MINUTES);
}

function createExpiredError(): ApiError {
  return new ApiError({ status: 401, code: "SESSION_ENDED", detail: "The session has ended. Sign in again." });
}

function createCredentialError(): ApiError {
  const detail = "This is no API key and no token: they have no blanks and no characters beyond ASCII. Copy it again.";
  return new ApiError({ status: 0, code: "NO_CREDENTIAL", detail });
}

function describeError(error: unknown): ApiError {
  return error instanceof ApiError ? error : toApiError(error);
}

function toApiError(error: unknown): ApiError {
  return new ApiError({ status: 0, code: "CONSOLE_FAILED", detail: String(error) });
}
