// The steps of a proof.
import { NoteError } from "./notes.ts";

export type StepName = "shown" | "digest" | "key" | "signature" | "origin" | "seen" | "growth" | "inclusion";
export type Outcome = "holds" | "fails" | "open";

/** Result of one step. */
export interface Step {
  readonly name: StepName;
  /** `open`: no check failed, but this step cannot be completed (yet). */
  readonly outcome: Outcome;
  /** In words. */
  readonly says: string;
  /** Compared values by their labels. */
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

  /** Runs some work and returns its result; adds a failed step and returns null on a NoteError. */
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
