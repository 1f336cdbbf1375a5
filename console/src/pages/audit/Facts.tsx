import { readSignature } from "@/api/signatures.ts";
import type { JsonObject } from "@/proof/record.ts";
import { SignatureText } from "@/signing/SignatureText.tsx";
import css from "./Audit.module.css";

/** Labels of the properties that only some records have. */
const FACTS: readonly [name: string, label: string][] = [
  ["Name", "Name"],
  ["Description", "Description"],
  ["NodeID", "Node"],
  ["ReasonCategory", "Reason"],
  ["ReasonText", "Reason in words"],
  ["ChangedFields", "Changed fields"],
  ["AmendmentID", "Decision on amendment"],
  ["Meaning", "Meaning"],
  ["RejectionReason", "Rejection reason"],
];

export function Facts({ record }: { record: JsonObject }) {
  const said = FACTS.filter(([name]) => record[name] !== undefined && record[name] !== "");
  const signature = readSignature(record.Signature);
  if (said.length === 0) {
    return null;
  }
  return (
    <dl class={css.facts}>
      {said.map(([name, label]) => (
        <Fact key={name} label={label} value={record[name]} />
      ))}
      {signature && (
        <div>
          <dt>Signature</dt>
          <dd>
            <SignatureText signature={signature} />
          </dd>
        </div>
      )}
    </dl>
  );
}

function Fact({ label, value }: { label: string; value: unknown }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{Array.isArray(value) ? value.join(", ") : String(value)}</dd>
    </div>
  );
}
