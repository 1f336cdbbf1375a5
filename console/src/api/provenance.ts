export type WorkspaceTarget = "PlatformConfig" | "AccessControl";
export type Target = WorkspaceTarget | "DomainEvents" | "DomainAmendments";

/** A stored audit event. */
export interface AuditEvent {
  RecordID: string;
  Timestamp: string;
  UserID: string;
  ActionType: string;
  EntityType: string;
  EntityID: string;
  NodeID?: string;
  BeforeState?: Record<string, unknown>;
  AfterState?: Record<string, unknown>;
  Name?: string;
  Description?: string;
  PreviousHash: string;
  Hash: string;
}

/** What a verification found. */
export interface Verdict {
  Valid: boolean | null;
  ChainValid: boolean;
  Empty: boolean;
  Record: Record<string, unknown> | null;
  RecomputedHash: string | null;
  BrokenAt: string | null;
  ForkDetected: boolean;
  Reason: string | null;
  Target: string;
}
