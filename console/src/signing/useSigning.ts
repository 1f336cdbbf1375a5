import { useEffect, useState } from "preact/hooks";
import type { Client } from "@/api/client.ts";
import { ApiError, api } from "@/api/index.ts";
import type { Identity } from "@/api/keys.ts";
import { fetchWorkspaceItem } from "@/api/policies.ts";
import { APPROVAL, REJECTION, type SignaturePolicy, type SignatureRequest, type SignedKind } from "@/api/signatures.ts";
import { useResource } from "@/components/useResource.ts";
import { allowLeaving } from "@/router/unsaved.ts";
import { type EntraConfig, goToEntra } from "@/session/entra.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import type { Right } from "@/session/rights.ts";
import { useEntraConfig } from "@/session/useEntraConfig.ts";
import {
  findRecentSignIn,
  findSessionClient,
  forgetRecentSignIn,
  type RecentSignIn,
  signInWithKey,
} from "./credential.ts";
import { forgetSignature, type PendingSignature, rememberSignature } from "./pendingSignature.ts";
import { useDecisionKey } from "./useDecisionKey.ts";

/** The decision that may need a signature. */
export interface SignedDecision {
  kind: SignedKind;
  verb: "approve" | "reject";
  /** The access right that the decision needs. */
  right: Right;
  /** The decided record, from `describeSubject`. */
  subject: string;
  /** The address, with #, at which the dialog opens again after a sign-in elsewhere. */
  address: string;
  /** Reason or comment, which the dialog itself asks for. */
  text: string;
  /** What was typed before a sign-in elsewhere. */
  pending: PendingSignature | undefined;
}

/** The signature of a decision: its fields, and the function that sends the decision with it. */
export interface Signing {
  /** False until the policy is known. */
  ready: boolean;
  required: boolean;
  verb: "approve" | "reject";
  who: Identity;
  meanings: readonly string[];
  meaning: string;
  setMeaning: (meaning: string) => void;
  statement: string;
  setStatement: (statement: string) => void;
  statementError: string | undefined;
  /** Whether the person must sign in again before the signature. */
  mustSignIn: boolean;
  /** The sign-in that is used, if it is not that of the session. */
  recent: RecentSignIn | undefined;
  key: string;
  setKey: (key: string) => void;
  keyError: string | undefined;
  entra: EntraConfig | undefined;
  leaveForEntra: () => Promise<void>;
  /** Checks the fields and marks the invalid ones; the decision can be sent if it returns true. */
  validate: () => boolean;
  /**
   * Sends the decision; signs in first if necessary.
   * @throws ApiError with `isPossiblyOwn` if an earlier attempt was possibly stored and caused the refusal
   */
  send: <T>(
    work: (client: Client, idempotencyKey: string, signature: SignatureRequest | undefined) => Promise<T>,
  ) => Promise<T>;
}

/** Codes of refusals that another sign-in of the same person ends. */
const SIGN_IN_AGAIN = ["REAUTHENTICATION_REQUIRED", "SIGNATURE_TOKEN_USED"];
/** Codes of refusals after a change of the policy while the dialog was open. */
const CHANGED_POLICY = ["SIGNATURE_REQUIRED", "SIGNATURE_MEANING_INVALID"];
const DEFAULT_MAX_AGE = 300;
const LONGEST_STATEMENT = 1000;

/** Provides the signature of a decision, if the workspace requires one. */
export function useSigning(decision: SignedDecision): Signing {
  const who = useIdentity();
  const { policy, ready, reload } = usePolicy();
  const [demanded, setDemanded] = useState(false);
  const required = demanded || policy?.[decision.kind] === "required";
  const fields = useFields(decision, policy);
  const attempts = useDecisionKey(
    JSON.stringify([who.principal, decision.subject]),
    JSON.stringify([decision.text.trim(), fields.meaning, fields.statement.trim()]),
    decision.pending?.idempotencyKey,
  );
  const { setRefused, ...credential } = useCredential(decision, who, policy, required);
  useEffect(forgetSignature, []);
  const leaveForEntra = async () => {
    if (credential.entra) {
      rememberSignature({
        ...{ subject: decision.subject, principal: who.principal ?? "", verb: decision.verb, text: decision.text },
        ...{ meaning: fields.meaning, statement: fields.statement, idempotencyKey: attempts.key },
      });
      allowLeaving();
      await goToEntra(credential.entra, { signs: decision.right, hash: decision.address });
    }
  };
  const handleRefusal = ({ code, status }: ApiError) => {
    if (CHANGED_POLICY.includes(code)) {
      setDemanded((before) => before || code === "SIGNATURE_REQUIRED");
      reload();
    }
    // The token of the sign-in can expire or be revoked while the sign-in is still recent enough.
    if (status === 401 || SIGN_IN_AGAIN.includes(code)) {
      forgetRecentSignIn();
      setRefused(true);
    }
  };
  const sign: Signing["send"] = async (work) => {
    const client = await credential.signIn();
    const statement = fields.statement.trim();
    const signature = { meaning: fields.meaning, ...(statement === "" ? {} : { statement }) };
    const made = await work(client, attempts.key, signature);
    if (policy?.maxAgeSeconds === 0) forgetRecentSignIn();
    return made;
  };
  const send: Signing["send"] = async (work) => {
    attempts.begin();
    try {
      const made = await (required ? sign(work) : work(api, attempts.key, undefined));
      attempts.succeed();
      return made;
    } catch (error) {
      attempts.fail(error);
      if (error instanceof ApiError) handleRefusal(error);
      throw error;
    }
  };
  const statementError =
    fields.statement.trim().length > LONGEST_STATEMENT
      ? `At most ${LONGEST_STATEMENT} characters are possible.`
      : undefined;
  const validate = () => !required || (credential.checkKey() && statementError === undefined);
  const shown = { ...fields, ...credential, statementError };
  return { ready, required, verb: decision.verb, who, ...shown, leaveForEntra, validate, send };
}

function usePolicy() {
  const canRead = useHasRights("Workspace.Catalog.Read");
  const resource = useResource(
    async (signal) => (canRead ? (await fetchWorkspaceItem(api, signal)).policies.signatures : undefined),
    [canRead],
  );
  return { policy: resource.data, ready: !resource.loading, reload: resource.reload };
}

function useFields({ verb, pending }: SignedDecision, policy: SignaturePolicy | undefined) {
  const meanings =
    verb === "reject" ? [REJECTION] : (policy?.meanings ?? [APPROVAL]).filter((name) => name !== REJECTION);
  const [chosen, setMeaning] = useState(pending?.meaning);
  const [statement, setStatement] = useState(pending?.statement ?? "");
  const preferred = verb === "reject" ? REJECTION : APPROVAL;
  const meaning = chosen !== undefined && meanings.includes(chosen) ? chosen : preferred;
  return { meanings, meaning, setMeaning, statement, setStatement };
}

function useCredential(
  { right }: SignedDecision,
  who: Identity,
  policy: SignaturePolicy | undefined,
  required: boolean,
) {
  const maxAge = policy?.maxAgeSeconds ?? DEFAULT_MAX_AGE;
  const [refused, setRefused] = useState(false);
  const [key, setKey] = useState("");
  const [keyError, setKeyError] = useState<string>();
  const entra = useEntraConfig(required);
  const recent = findRecentSignIn(who, right, maxAge);
  const current = recent?.client ?? (refused ? undefined : findSessionClient(maxAge));
  const mustSignIn = required && current === undefined;
  const checkKey = () => {
    const missing = mustSignIn && key.trim() === "";
    setKeyError(missing ? "Enter your API key; a signature needs a recent sign-in." : undefined);
    return !missing;
  };
  const signIn = async (): Promise<Client> => {
    if (current) return current;
    const opened = await signInWithKey(key.trim(), right, who);
    setKey("");
    return opened.client;
  };
  return { setRefused, recent, mustSignIn, key, setKey, keyError, checkKey, entra, signIn };
}
