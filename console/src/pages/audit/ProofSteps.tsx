import { Icon } from "@/components/Icon.tsx";
import { Loading } from "@/components/Loading.tsx";
import type { Outcome, Step, StepName } from "@/proof/steps.ts";
import css from "./Prove.module.css";

const TITLES: Readonly<Record<StepName, string>> = {
  shown: "The record on this page",
  digest: "The record's hash",
  key: "The verifier key",
  signature: "The checkpoint's signature",
  origin: "The checkpoint's chain",
  seen: "The checkpoint that this tab saw before",
  growth: "Your earlier checkpoint",
  inclusion: "The record in the checkpoint",
};

const ICONS = { holds: "check", fails: "error", open: "info" } as const;
const WORDS: Readonly<Record<Outcome, string>> = { holds: "passed", fails: "failed", open: "undecided" };

/** The steps of a proof, with the compared values. */
export function ProofSteps({ steps, busy }: { steps: readonly Step[]; busy: boolean }) {
  return (
    <>
      <ol class={css.steps} aria-live="polite">
        {steps.map((step) => (
          <li key={step.name} class={css[step.outcome]}>
            <Icon name={ICONS[step.outcome]} />
            <div>
              <h3>
                {TITLES[step.name]} <span class={css.word}>{WORDS[step.outcome]}</span>
              </h3>
              <p>{step.says}</p>
              <Values values={step.values} />
            </div>
          </li>
        ))}
      </ol>
      {busy && <Loading label="Proving" rows={1} />}
    </>
  );
}

function Values({ values }: { values: Step["values"] }) {
  const entries = Object.entries(values);
  if (entries.length === 0) {
    return null;
  }
  return (
    <details>
      <summary>Compared values</summary>
      <dl>
        {entries.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code>{value}</code>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
