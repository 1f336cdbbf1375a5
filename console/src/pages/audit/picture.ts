// What the picture of a verified chain shows: where it begins, what stands around a break, what holds its end.
import type { Verdict } from "@/api/provenance.ts";
import { recordId, sequenceOf } from "@/proof/record.ts";

export type NodeKind = "genesis" | "record" | "tip" | "branch" | "checkpoint";
/** `unread`: it stands behind the break, so that nothing was verified about it. */
export type NodeState = "sound" | "broken" | "missing" | "unread";
export type LinkState = "sound" | "broken" | "unread";

/** A place of the picture. */
export interface ChainNode {
  readonly kind: NodeKind;
  readonly label: string;
  readonly state: NodeState;
  /** The record that it stands for. */
  readonly sequence?: number;
}

/** What leads from a place to the next one. */
export interface ChainLink {
  readonly state: LinkState;
  /** Records that it leaves out. */
  readonly left: number;
}

/** A row of places, and the links between them: one fewer. */
export interface Picture {
  readonly nodes: readonly ChainNode[];
  readonly links: readonly ChainLink[];
  /** The second record that claims a predecessor, beside the place of this index. */
  readonly branch: { readonly at: number; readonly node: ChainNode } | null;
  /** The newest checkpoint, over the place of this index. */
  readonly checkpoint: { readonly at: number; readonly node: ChainNode } | null;
  /** The whole picture in words. */
  readonly text: string;
}

/** What is known about a chain's end. */
export interface ChainEnd {
  /** Sequence of the newest record that can be read. */
  readonly tip: number;
  /** Size of the newest checkpoint; null where there is none. */
  readonly checkpoint: number | null;
}

const HASH = /^[0-9a-f]{64}$/;

/** Returns the sequence at which a verdict says that the chain is broken; null for a sound one, or a checkpoint's. */
export function brokenSequence(verdict: Verdict): number | null {
  const at = verdict.BrokenAt ?? "";
  if (!HASH.test(at)) return sequenceOf(at);
  // On a fork BrokenAt is a hash; the reason names the record that it stands beside.
  return sequenceOf(/\b[0-9]{12}\b/.exec(verdict.Reason ?? "")?.[0]);
}

/** Returns the picture of a chain. */
export function pictured(verdict: Verdict, end: ChainEnd): Picture {
  const broken = brokenSequence(verdict);
  const distrusted = !verdict.ChainValid && broken === null;
  const places = placesOf(end, broken);
  const nodes = places.map((sequence) => nodeAt(sequence, end, broken, verdict.ForkDetected));
  const links = places
    .slice(1)
    .map((sequence, index) => linkTo(sequence, places[index] ?? 0, broken, verdict.ForkDetected));
  const branch = verdict.ForkDetected && broken !== null ? branchOf(places.indexOf(broken), verdict) : null;
  const at = end.checkpoint === null ? -1 : places.indexOf(end.checkpoint);
  const checkpoint = at < 0 ? null : { at, node: checkpointOf(end.checkpoint ?? 0, distrusted, broken) };
  return { nodes, links, branch, checkpoint, text: inWords(verdict, end, broken) };
}

/** Sequences that the picture shows, 0 for the genesis hash, in order. */
function placesOf(end: ChainEnd, broken: number | null): number[] {
  const around =
    broken === null ? [] : [broken - 1, broken, broken + 1].filter((place) => place <= Math.max(end.tip, broken));
  const places = [0, 1, end.tip, end.checkpoint ?? 0, ...around];
  const last = Math.max(end.tip, broken ?? 0, end.checkpoint ?? 0);
  return [...new Set(places)].filter((place) => place >= 0 && place <= last).sort((one, other) => one - other);
}

function nodeAt(sequence: number, end: ChainEnd, broken: number | null, forked: boolean): ChainNode {
  if (sequence === 0) return { kind: "genesis", label: "Genesis", state: "sound" };
  const kind = sequence === end.tip ? "tip" : "record";
  return { kind, label: recordId(sequence), state: stateOf(sequence, end, broken, forked), sequence };
}

function stateOf(sequence: number, end: ChainEnd, broken: number | null, forked: boolean): NodeState {
  if (sequence > end.tip) return "missing";
  if (broken === null || sequence < broken) return "sound";
  if (sequence === broken) return forked ? "sound" : "broken";
  return "unread";
}

function linkTo(sequence: number, before: number, broken: number | null, forked: boolean): ChainLink {
  const left = sequence - before - 1;
  if (broken === null || sequence < broken || (forked && sequence === broken)) return { state: "sound", left };
  return { state: sequence === broken ? "broken" : "unread", left };
}

function branchOf(at: number, verdict: Verdict): { at: number; node: ChainNode } {
  const label = HASH.test(verdict.BrokenAt ?? "") ? `${verdict.BrokenAt?.slice(0, 12)}…` : "Second record";
  return { at, node: { kind: "branch", label, state: "broken" } };
}

function checkpointOf(size: number, distrusted: boolean, broken: number | null): ChainNode {
  const state = distrusted ? "broken" : broken !== null && broken <= size ? "unread" : "sound";
  return { kind: "checkpoint", label: `Checkpoint ${size}`, state };
}

function inWords(verdict: Verdict, end: ChainEnd, broken: number | null): string {
  if (verdict.Empty) return "The chain has no records: nothing was checked.";
  const signed =
    end.checkpoint === null
      ? "No checkpoint was signed yet."
      : `The newest checkpoint covers ${counted(end.checkpoint)}.`;
  if (verdict.ChainValid) return `From the genesis hash to ${recordId(end.tip)} every link holds. ${signed}`;
  if (broken === null) return `Every link holds, but the newest checkpoint does not fit the chain. ${signed}`;
  if (verdict.ForkDetected) return `Two records claim the predecessor of ${recordId(broken)}. ${signed}`;
  const before = broken === 1 ? "the genesis hash" : recordId(broken - 1);
  return `Every link holds up to ${before}; the chain is broken at ${recordId(broken)}. ${signed}`;
}

function counted(records: number): string {
  return records === 1 ? "1 record" : `${records} records`;
}
