import { checkName, splitLines } from "@/administration/fieldErrors.ts";
import type { FormRules } from "@/administration/useItemForm.ts";
import { type ProvenancePolicy, type Quotas, WORKSPACE_PATH, type WorkspaceItem } from "@/api/policies.ts";
import {
  checkSignatures,
  SIGNATURE_LABELS,
  type SignatureDraft,
  toSignatureDraft,
  toSignatures,
} from "./signaturePolicy.ts";

/** The form of the workspace's name and policies. */
export interface PolicyDraft extends SignatureDraft {
  name: string;
  description: string;
  /** False if the workspace has no audit log. */
  provenance: boolean;
  requireApproval: boolean;
  requireTwoPersonAuth: boolean;
  requireReasonText: boolean;
  /** One category a line. */
  reasonCategories: string;
  /** Empty means the default of the tier. */
  streamsPerPrincipal: string;
  jobsPerPrincipal: string;
  downloadBytes: string;
  /** Policies that this page does not show; a PUT without them would reset them. */
  others: Record<string, unknown>;
}

type QuotaName = keyof Quotas;

export const QUOTAS: Record<QuotaName, string> = {
  streamsPerPrincipal: "Open live streams",
  jobsPerPrincipal: "Unfinished downloads",
  downloadBytes: "Bytes of stored downloads",
};

/** Values for a workspace without an audit log. */
const OFF: ProvenancePolicy = {
  requireApproval: true,
  requireTwoPersonAuth: false,
  requireReasonText: false,
  reasonCategories: ["other"],
};

export const POLICY_RULES: FormRules<WorkspaceItem, PolicyDraft> = {
  noun: "workspace",
  labels: {
    name: "Name",
    description: "Description",
    provenance: "Audit log",
    requireApproval: "Approval of amendments",
    requireTwoPersonAuth: "Two people",
    requireReasonText: "Reason in words",
    reasonCategories: "Reason categories",
    ...QUOTAS,
    ...SIGNATURE_LABELS,
    others: "Other policies",
  },
  path: () => WORKSPACE_PATH,
  toDraft,
  toBody: (draft) => ({
    name: draft.name,
    description: draft.description === "" ? null : draft.description,
    policies: {
      ...draft.others,
      provenance: draft.provenance ? toProvenance(draft) : null,
      quotas: {
        streamsPerPrincipal: toQuota(draft.streamsPerPrincipal),
        jobsPerPrincipal: toQuota(draft.jobsPerPrincipal),
        downloadBytes: toQuota(draft.downloadBytes),
      },
      signatures: toSignatures(draft),
    },
  }),
  check: (draft) => ({
    name: checkName(draft.name, "a name"),
    "policies.provenance.reasonCategories": draft.provenance ? checkCategories(draft.reasonCategories) : undefined,
    "policies.quotas.streamsPerPrincipal": checkQuota(draft.streamsPerPrincipal),
    "policies.quotas.jobsPerPrincipal": checkQuota(draft.jobsPerPrincipal),
    "policies.quotas.downloadBytes": checkQuota(draft.downloadBytes),
    ...checkSignatures(draft),
  }),
};

export function toDraft({ name, description, policies }: WorkspaceItem): PolicyDraft {
  const { provenance, quotas, signatures, ...others } = policies;
  const { reasonCategories, ...switches } = provenance ?? OFF;
  return {
    name,
    description: description ?? "",
    provenance: provenance !== null,
    requireApproval: switches.requireApproval,
    requireTwoPersonAuth: switches.requireTwoPersonAuth,
    requireReasonText: switches.requireReasonText,
    reasonCategories: reasonCategories.join("\n"),
    streamsPerPrincipal: String(quotas.streamsPerPrincipal ?? ""),
    jobsPerPrincipal: String(quotas.jobsPerPrincipal ?? ""),
    downloadBytes: String(quotas.downloadBytes ?? ""),
    ...toSignatureDraft(signatures),
    others,
  };
}

function toProvenance(draft: PolicyDraft): ProvenancePolicy {
  return {
    requireApproval: draft.requireApproval,
    requireTwoPersonAuth: draft.requireTwoPersonAuth,
    requireReasonText: draft.requireReasonText,
    reasonCategories: splitLines(draft.reasonCategories),
  };
}

function toQuota(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

function checkCategories(text: string): string | undefined {
  const categories = splitLines(text);
  if (categories.length === 0) {
    return "Enter at least one category.";
  }
  const again = categories.find((category, index) => categories.indexOf(category) !== index);
  return again === undefined ? undefined : `“${again}” occurs more than once`;
}

function checkQuota(text: string): string | undefined {
  const value = toQuota(text);
  return value === null || (Number.isSafeInteger(value) && value >= 1)
    ? undefined
    : "must be a whole number of at least 1";
}
