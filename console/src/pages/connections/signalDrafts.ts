// The signals of a connection as the text of a form, and proposals from messages.
import { checkName, type FieldMessages } from "@/administration/fieldErrors.ts";
import type { ProposedSignal, Signal, SignalType } from "@/api/connections.ts";

/** The form of a signal; numbers as text. */
export interface SignalDraft {
  name: string;
  pointer: string;
  type: SignalType;
  unit: string;
  description: string;
  min: string;
  max: string;
}

export const MAX_SIGNALS = 1000;
export const SIGNAL_TYPES: readonly SignalType[] = ["real", "long", "bool", "string", "datetime"];
export const NEW_SIGNAL: SignalDraft = {
  name: "",
  pointer: "/",
  type: "real",
  unit: "",
  description: "",
  min: "",
  max: "",
};

const POINTER = /^(\/([^/~]|~[01])*)+$/;
const NUMERIC: ReadonlySet<SignalType> = new Set(["real", "long"]);

/** Tells whether values of a type can have limits. */
export function isNumeric(type: SignalType): boolean {
  return NUMERIC.has(type);
}

export function toSignalDraft(signal: Signal): SignalDraft {
  const { name, pointer, type, unit, description, min, max } = signal;
  return {
    name,
    pointer,
    type,
    unit: unit ?? "",
    description: description ?? "",
    min: formatLimit(min),
    max: formatLimit(max),
  };
}

/** Converts a valid draft; only numbers have limits. */
export function toSignal(draft: SignalDraft): Signal {
  const { name, pointer, type, unit, description } = draft;
  const limit = (text: string) => (isNumeric(type) && text.trim() !== "" ? Number(text) : null);
  return {
    name,
    pointer,
    type,
    unit: unit === "" ? null : unit,
    description: description === "" ? null : description,
    min: limit(draft.min),
    max: limit(draft.max),
  };
}

/** Converts a proposal. @param withLimits takes the lowest and highest observed value as limits */
export function toProposedDraft({ name, pointer, type, min, max }: ProposedSignal, withLimits: boolean): SignalDraft {
  const limits = withLimits && isNumeric(type) ? { min: formatLimit(min), max: formatLimit(max) } : {};
  return { ...NEW_SIGNAL, name, pointer, type, ...limits };
}

/** Returns the proposals whose pointer and name no signal has. */
export function listNewProposals(
  proposals: readonly ProposedSignal[],
  drafts: readonly SignalDraft[],
): ProposedSignal[] {
  const pointers = new Set(drafts.map(({ pointer }) => pointer));
  const names = new Set(drafts.map(({ name }) => name));
  return proposals.filter(({ name, pointer }) => !pointers.has(pointer) && !names.has(name));
}

/** Checks signals as the service does; the fields have the service's names. */
export function checkSignals(drafts: readonly SignalDraft[]): FieldMessages {
  const found: Record<string, string | undefined> = {};
  const names = new Set<string>();
  const pointers = new Set<string>();
  for (const [index, draft] of drafts.entries()) {
    const at = `signals[${index}]`;
    found[`${at}.name`] = checkName(draft.name, "a name") ?? checkUnique(draft.name, names);
    found[`${at}.pointer`] = POINTER.test(draft.pointer)
      ? checkUnique(draft.pointer, pointers)
      : "must be a JSON pointer, such as /motor/speed";
    names.add(draft.name);
    pointers.add(draft.pointer);
    if (isNumeric(draft.type)) {
      found[`${at}.min`] = checkNumber(draft.min) ?? checkOrder(draft);
      found[`${at}.max`] = checkNumber(draft.max);
    }
  }
  return found;
}

function checkUnique(text: string, others: ReadonlySet<string>): string | undefined {
  return others.has(text) ? "belongs to another signal" : undefined;
}

function checkNumber(text: string): string | undefined {
  return text.trim() === "" || Number.isFinite(Number(text)) ? undefined : "must be a number";
}

function checkOrder({ min, max }: SignalDraft): string | undefined {
  return min.trim() !== "" && max.trim() !== "" && Number(min) > Number(max) ? "must not be above max" : undefined;
}

function formatLimit(limit: number | null): string {
  return limit === null ? "" : String(limit);
}
