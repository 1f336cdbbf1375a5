// The part of the policy form about electronic signatures.
import { splitLines } from "@/administration/fieldErrors.ts";
import { APPROVAL, REJECTION, type SignaturePolicy } from "@/api/signatures.ts";

export interface SignatureDraft {
  /** Whether decisions about amendments need a signature. */
  signAmendments: boolean;
  /** Whether decisions about drafts of queries need a signature. */
  signQueries: boolean;
  maxAgeSeconds: string;
  /** One meaning a line. */
  meanings: string;
}

export const SIGNATURE_LABELS: Record<keyof SignatureDraft, string> = {
  signAmendments: "Signatures of amendments",
  signQueries: "Signatures of queries",
  maxAgeSeconds: "Maximum age of the sign-in",
  meanings: "Meanings",
};

const LONGEST_AGE = 3600;
const MOST_MEANINGS = 20;
const LONGEST_MEANING = 64;

export function toSignatureDraft({ amendments, queries, maxAgeSeconds, meanings }: SignaturePolicy): SignatureDraft {
  return {
    signAmendments: amendments === "required",
    signQueries: queries === "required",
    maxAgeSeconds: String(maxAgeSeconds),
    meanings: meanings.join("\n"),
  };
}

export function toSignatures(draft: SignatureDraft): SignaturePolicy {
  return {
    amendments: draft.signAmendments ? "required" : "off",
    queries: draft.signQueries ? "required" : "off",
    maxAgeSeconds: Number(draft.maxAgeSeconds),
    meanings: splitLines(draft.meanings),
  };
}

export function checkSignatures(draft: SignatureDraft): Record<string, string | undefined> {
  return {
    "policies.signatures.maxAgeSeconds": checkAge(draft.maxAgeSeconds),
    "policies.signatures.meanings": checkMeanings(splitLines(draft.meanings)),
  };
}

function checkAge(text: string): string | undefined {
  const isValid = /^\d+$/.test(text.trim()) && Number(text) <= LONGEST_AGE;
  return isValid ? undefined : `must be a whole number of seconds from 0 to ${LONGEST_AGE}`;
}

function checkMeanings(meanings: readonly string[]): string | undefined {
  const own = meanings.filter((meaning) => meaning !== APPROVAL && meaning !== REJECTION);
  const again = meanings.find((meaning, index) => meanings.indexOf(meaning) !== index);
  const long = meanings.find((meaning) => meaning.length > LONGEST_MEANING);
  if (again !== undefined) return `“${again}” occurs more than once`;
  if (long !== undefined) return `“${long}” has more than ${LONGEST_MEANING} characters`;
  return own.length > MOST_MEANINGS ? `at most ${MOST_MEANINGS} meanings are possible` : undefined;
}
