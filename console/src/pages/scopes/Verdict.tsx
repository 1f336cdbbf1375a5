import type { AuditScope } from "@/api/auditScopes.ts";
import { Status } from "@/components/Badge.tsx";

/** The verdict of a chain's last verification. */
export function Verdict({ verdict }: { verdict: AuditScope["lastVerdict"] }) {
  switch (verdict) {
    case "valid":
      return <Status tone="good">Intact</Status>;
    case "broken":
      return <Status tone="bad">Broken</Status>;
    default:
      return <Status>Not verified yet</Status>;
  }
}
