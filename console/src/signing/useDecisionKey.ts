import { useLayoutEffect, useState } from "preact/hooks";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { ApiError, isOutcomeUnknown, isOutdated } from "@/api/problem.ts";

/** The `Idempotency-Key` of a decision. */
export interface DecisionKey {
  key: string;
  /** Records the start of an attempt. */
  begin: () => void;
  /** Records that the decision is stored. */
  succeed: () => void;
  /** Records the error of an attempt, and sets its `isPossiblyOwn`. */
  fail: (error: unknown) => void;
}

/** An attempt that was possibly stored. */
interface Attempt {
  readonly key: string;
  readonly content: string;
  /** Whether an earlier attempt, with other content, was possibly stored. */
  readonly edited: boolean;
}

/** Attempts of unknown outcome. They outlast the dialog, which can be closed before the reply. */
const openAttempts = new Map<string, Attempt>();

/**
 * Holds the `Idempotency-Key` of a decision: a retry after a lost reply stores it once, also if the dialog was closed
 * meanwhile; an edited decision gets a new key.
 * @param subject the decided record and the person
 * @param content everything that the user can edit
 * @param first the key from before a sign-in elsewhere
 */
export function useDecisionKey(subject: string, content: string, first: string | undefined): DecisionKey {
  const [open] = useState(() => openAttempts.get(subject));
  const [key, setKey] = useState(() => open?.key ?? first ?? createIdempotencyKey());
  const [sent, setSent] = useState(open?.content);
  /** Whether an attempt with this content was possibly stored; the service refused all others for good. */
  const [uncertain, setUncertain] = useState(open !== undefined);
  /** Whether an earlier attempt, with other content, was possibly stored. */
  const [edited, setEdited] = useState(open?.edited ?? false);
  useLayoutEffect(() => {
    const remembered = openAttempts.get(subject);
    if (remembered?.content === content && remembered.key !== key) {
      // The fields have the content of the attempt again: a dialog can open without the text of a reason.
      setSent(content);
      setEdited(remembered.edited);
      setUncertain(true);
      setKey(remembered.key);
    } else if (sent !== undefined && sent !== content) {
      setSent(undefined);
      setEdited(edited || uncertain);
      setUncertain(false);
      setKey(createIdempotencyKey());
    }
  }, [sent, content]);
  const begin = () => {
    setSent(content);
    openAttempts.set(subject, { key, content, edited });
  };
  const forget = () => {
    // After this dialog was closed, another one has possibly begun another attempt.
    if (openAttempts.get(subject)?.key === key) {
      openAttempts.delete(subject);
    }
  };
  const fail = (error: unknown) => {
    const isUncertain = uncertain || isOutcomeUnknown(error);
    setUncertain(isUncertain);
    if (!isUncertain && !edited) {
      forget();
    }
    if (!(error instanceof ApiError)) {
      return;
    }
    // The service finds an own decision with the same content by its key, unless the record was edited after it.
    error.isPossiblyOwn = edited || (uncertain && isOutdated(error));
    if (error.code === "IDEMPOTENCY_KEY_REUSED") {
      // The service compares the rights of the token, too, and a sign-in for a signature has fewer rights than the
      // session. With another key it finds a decision about a query by its approver and its ETag. A conflict that
      // follows can be due to the earlier attempt.
      const next = createIdempotencyKey();
      setEdited(true);
      setKey(next);
      openAttempts.set(subject, { key: next, content, edited: true });
    }
  };
  return { key, begin, succeed: forget, fail };
}
