// What the picture of a verified chain shows: where it begins, what stands around a break, what holds its end.
import type { Verdict } from "@/api/provenance.ts";
import { formatRecordId, parseRecordId } from "@/proof/record.ts";

export type NodeKind = "genesis" | "record" | "tip" | "branch" | "checkpoint";
/** `unread`: it stands behind the break or came after the verdict, so that nothing was verified about it. */
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
  /** Sequence of the newest record that the verdict is about. */
  readonly tip: number;
  /** Size of the newest checkpoint; null where there is none. */
  readonly checkpoint: number | null;
}

const HASH = /^[0-9a-f]{64}$/;

/** Returns the sequence at which a verdict says that the chain is broken; null for a sound one, or a checkpoint's. */
export function findBrokenSequence(verdict: Verdict): number | null {
  const at = verdict.BrokenAt ?? "";
  if (!HASH.test(at)) return parseRecordId(at);
  // On a fork BrokenAt is a hash; the reason names the record that it stands beside.
  return parseRecordId(/\b[0-9]{12}\b/.exec(verdict.Reason ?? "")?.[0]);
}

/** Where a chain is broken. */
interface Break {
  /** First place that does not hold what belongs there: a record that is missing, or `at` itself. */
  readonly from: number;
  /** What the verdict names. */
  readonly at: number;
  readonly forked: boolean;
}

/** Returns the picture of a chain. */
export function buildPicture(verdict: Verdict, end: ChainEnd): Picture {
  const broken = findBreak(verdict);
  const places = listPlaces(end, broken);
  const nodes = places.map((sequence) => buildNode(sequence, end, broken));
  const links = places.slice(1).map((sequence, index) => buildLink(sequence, places[index] ?? 0, end, broken));
  const branch = broken?.forked ? buildBranch(places.indexOf(broken.at), verdict) : null;
  const at = end.checkpoint === null ? -1 : places.indexOf(end.checkpoint);
  const state = verdict.ChainValid || broken !== null ? "sound" : "broken";
  const checkpoint = at < 0 ? null : { at, node: buildCheckpoint(end, state, broken) };
  return { nodes, links, branch, checkpoint, text: describeChain(verdict, end, broken) };
}

function findBreak(verdict: Verdict): Break | null {
  const at = findBrokenSequence(verdict);
  if (at === null) return null;
  const missing = parseRecordId(/stands where ([0-9]{12}) is missing/.exec(verdict.Reason ?? "")?.[1]);
  const from = missing !== null && missing < at ? missing : at;
  return { from, at, forked: verdict.ForkDetected };
}

/** Sequences that the picture shows, 0 for the genesis hash, in order. */
function listPlaces(end: ChainEnd, broken: Break | null): number[] {
  const around = broken ? [broken.from - 1, broken.from, broken.at - 1, broken.at, broken.at + 1] : [];
  const shown = around.filter((place) => place <= Math.max(end.tip, broken?.at ?? 0));
  const places = [0, 1, end.tip, end.checkpoint ?? 0, ...shown];
  return [...new Set(places)].filter((place) => place >= 0).sort((one, other) => one - other);
}

function buildNode(sequence: number, end: ChainEnd, broken: Break | null): ChainNode {
  if (sequence === 0) return { kind: "genesis", label: "Genesis", state: "sound" };
  const kind = sequence === end.tip ? "tip" : "record";
  return { kind, label: formatRecordId(sequence), state: chooseState(sequence, end, broken), sequence };
}

function chooseState(sequence: number, end: ChainEnd, broken: Break | null): NodeState {
  if (sequence > end.tip) return broken === null ? "unread" : "missing";
  if (broken === null || sequence < broken.from) return "sound";
  if (sequence < broken.at) return "missing";
  if (sequence > broken.at) return "unread";
  return broken.forked ? "sound" : "broken";
}

function buildLink(sequence: number, before: number, end: ChainEnd, broken: Break | null): ChainLink {
  const left = sequence - before - 1;
  if (broken === null && sequence > end.tip) return { state: "unread", left };
  if (broken === null || sequence < broken.from || (broken.forked && sequence === broken.at)) {
    return { state: "sound", left };
  }
  return { state: sequence <= broken.at ? "broken" : "unread", left };
}

function buildBranch(at: number, verdict: Verdict): { at: number; node: ChainNode } {
  const label = HASH.test(verdict.BrokenAt ?? "") ? `${verdict.BrokenAt?.slice(0, 12)}…` : "Second record";
  return { at, node: { kind: "branch", label, state: "broken" } };
}

function buildCheckpoint(end: ChainEnd, state: "sound" | "broken", broken: Break | null): ChainNode {
  const size = end.checkpoint ?? 0;
  const behind = broken === null ? state === "sound" && size > end.tip : broken.from <= size;
  return { kind: "checkpoint", label: `Checkpoint ${size}`, state: behind ? "unread" : state };
}

function describeChain(verdict: Verdict, end: ChainEnd, broken: Break | null): string {
  if (verdict.Empty) return "The chain has no records: nothing was checked.";
  const signed =
    end.checkpoint === null
      ? "No checkpoint was signed yet."
      : `The newest checkpoint covers ${formatRecords(end.checkpoint)}.`;
  if (verdict.ChainValid) return `From the genesis hash to ${formatRecordId(end.tip)} every link holds. ${signed}`;
  if (broken === null) return `Every link holds, but the newest checkpoint does not fit the chain. ${signed}`;
  if (broken.forked) return `Two records claim the predecessor of ${formatRecordId(broken.at)}. ${signed}`;
  const before = broken.from === 1 ? "the genesis hash" : formatRecordId(broken.from - 1);
  const gap = broken.from < broken.at ? ` and ${formatRecordId(broken.from)} is missing` : "";
  return `Every link holds up to ${before}${gap}; the chain is broken at ${formatRecordId(broken.at)}. ${signed}`;
}

function formatRecords(records: number): string {
  return records === 1 ? "1 record" : `${records} records`;
}
