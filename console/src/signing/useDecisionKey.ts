import { useLayoutEffect, useState } from "preact/hooks";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { ApiError, isOutcomeUnknown, isOutdated } from "@/api/problem.ts";

/** The `Idempotency-Key` of a decision. */
export interface DecisionKey {
  key: string;
  /** Records the start of an attempt. */
  begin: () => void;
  /** Records the error of an attempt, and sets its `isPossiblyOwn`. */
  fail: (error: unknown) => void;
}

/**
 * Holds the `Idempotency-Key` of a decision: a retry after a lost reply stores it once; an edited decision gets a new
 * key.
 * @param content everything that the user can edit
 * @param first the key from before a sign-in elsewhere
 */
export function useDecisionKey(content: string, first: string | undefined): DecisionKey {
  const [key, setKey] = useState(() => first ?? createIdempotencyKey());
  const [sent, setSent] = useState<string>();
  /** Whether an attempt with this content was possibly stored; the service refused all others for good. */
  const [uncertain, setUncertain] = useState(false);
  /** Whether an earlier attempt, with other content, was possibly stored. */
  const [edited, setEdited] = useState(false);
  useLayoutEffect(() => {
    if (sent !== undefined && sent !== content) {
      setSent(undefined);
      setEdited(edited || uncertain);
      setUncertain(false);
      setKey(createIdempotencyKey());
    }
  }, [sent, content]);
  const fail = (error: unknown) => {
    setUncertain(uncertain || isOutcomeUnknown(error));
    if (!(error instanceof ApiError)) {
      return;
    }
    // The service finds an own decision with the same content by its key, unless the record was edited after it.
    error.isPossiblyOwn = edited || (uncertain && isOutdated(error));
    if (error.code === "IDEMPOTENCY_KEY_REUSED") {
      // The service compares the rights of the token, too, and a sign-in for a signature has fewer rights than the
      // session. With another key it finds a decision about a query by its approver and its ETag. A conflict that
      // follows can be due to the earlier attempt.
      setEdited(true);
      setKey(createIdempotencyKey());
    }
  };
  return { key, begin: () => setSent(content), fail };
}
