/** A correction, as it is stored. */
export interface Amendment {
  RecordID: string;
  ScopeKey: string;
  EntityType: string;
  EntityID: string;
  OriginalRecord: Record<string, unknown>;
  AmendedRecord: Record<string, unknown>;
  ChangedFields: string[];
  ReasonCategory: string;
  ReasonText: string;
  AmendedBy: string;
  AmendedAt: string;
  Status: "pending" | "approved";
  PreviousHash: string;
  Hash: string;
}

/** A decision on a correction, as it is stored. */
export interface Transition {
  RecordID: string;
  ScopeKey: string;
  EntityType: string;
  EntityID: string;
  AmendmentID: string;
  Status: "approved" | "rejected";
  ApprovedBy?: string;
  ApprovedAt?: string;
  RejectedBy?: string;
  RejectedAt?: string;
  RejectionReason?: string;
  Meaning: "approval" | "rejection";
  PreviousHash: string;
  Hash: string;
}

export function isTransition(record: Amendment | Transition): record is Transition {
  return "AmendmentID" in record;
}
