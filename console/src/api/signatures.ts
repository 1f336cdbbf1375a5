// Electronic signatures of decisions: what is sent, what is stored, and the policy of the workspace.

/** An electronic signature of a decision. */
export interface Signature {
  userId: string;
  /** The member's name when it signed. */
  printedName: string;
  meaning: string;
  statement: string | null;
  signedAt: string;
  authTime: string;
  authMethods: string[];
  recordHash: string;
}

/** A signature as a record of the audit log holds it: the same properties, in PascalCase. */
export interface RecordedSignature {
  UserID: string;
  PrintedName: string;
  Meaning: string;
  Statement: string | null;
  SignedAt: string;
  AuthTime: string;
  AuthMethods: string[];
  RecordHash: string;
}

/** The property `signature` of the body of a decision. */
export interface SignatureRequest {
  meaning: string;
  statement?: string;
}

/** Decisions that can need a signature. */
export type SignedKind = "amendments" | "queries";

/** Which decisions need a signature, how old its sign-in may be, and what it can mean. */
export interface SignaturePolicy extends Record<SignedKind, "off" | "required"> {
  /** 0 if each signature needs a sign-in of its own. */
  maxAgeSeconds: number;
  meanings: string[];
}

/** The meaning of each rejection; an approval has another one. */
export const REJECTION = "rejection";
export const APPROVAL = "approval";

/** Converts the signature of a record; undefined without one, or for other content. */
export function readSignature(recorded: unknown): Signature | undefined {
  if (typeof recorded !== "object" || recorded === null) {
    return undefined;
  }
  const { UserID, PrintedName, Meaning, Statement, SignedAt, AuthTime, AuthMethods, RecordHash } =
    recorded as RecordedSignature;
  return {
    ...{ userId: UserID, printedName: PrintedName, meaning: Meaning, statement: Statement, signedAt: SignedAt },
    ...{ authTime: AuthTime, authMethods: AuthMethods, recordHash: RecordHash },
  };
}
