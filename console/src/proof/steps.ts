// The steps of a proof, told one by one.
import { NoteError } from "./notes.ts";

export type StepName = "shown" | "digest" | "key" | "signature" | "origin" | "growth" | "inclusion";
export type Outcome = "holds" | "fails" | "open";

/** What one step found. */
export interface Step {
  readonly name: StepName;
  /** `open`: nothing speaks against the record, but this cannot be told (yet). */
  readonly outcome: Outcome;
  /** In words. */
  readonly says: string;
  /** Values that were compared, by what they are. */
  readonly values: Readonly<Record<string, string>>;
}

/** Collects steps. */
export class ProofSteps {
  readonly steps: Step[] = [];

  constructor(private readonly told: (step: Step) => void) {}

  get outcome(): Outcome {
    const found = this.steps.map((step) => step.outcome);
    if (found.includes("fails")) return "fails";
    return found.includes("open") ? "open" : "holds";
  }

  add(name: StepName, outcome: Outcome, says: string, values: Record<string, string> = {}): void {
    const step = { name, outcome, says, values };
    this.steps.push(step);
    this.told(step);
  }

  /** Returns what some work gives; null, after saying why, when it meets what is not to be trusted. */
  async attempt<T>(name: StepName, what: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
      this.add(name, "fails", `${what} ${error.message}`);
      return null;
    }
  }
}
