// The picture of a verified chain: its start, the records around a break, its end and checkpoint.
import type { Verdict } from "@/api/provenance.ts";
import { formatRecordId, parseRecordId } from "@/proof/record.ts";

export type NodeKind = "genesis" | "record" | "tip" | "branch" | "checkpoint";
/** `unread`: not verified, because it follows the break or arrived after the verdict. */
export type NodeState = "sound" | "broken" | "missing" | "unread";
export type LinkState = "sound" | "broken" | "unread";

/** A node of the picture. */
export interface ChainNode {
  readonly kind: NodeKind;
  readonly label: string;
  readonly state: NodeState;
  /** Sequence of its record. */
  readonly sequence?: number;
}

/** A link from a node to the next one. */
export interface ChainLink {
  readonly state: LinkState;
  /** Number of omitted records. */
  readonly left: number;
}

/** A row of nodes, and the links between them: one fewer. */
export interface Picture {
  readonly nodes: readonly ChainNode[];
  readonly links: readonly ChainLink[];
  /** The second record with the same predecessor, next to the node of this index. */
  readonly branch: { readonly at: number; readonly node: ChainNode } | null;
  /** The newest checkpoint, above the node of this index. */
  readonly checkpoint: { readonly at: number; readonly node: ChainNode } | null;
  /** A description of the picture. */
  readonly text: string;
}

/** The end of a chain. */
export interface ChainEnd {
  /** Sequence of the newest verified record. */
  readonly tip: number;
  /** Size of the newest checkpoint; null without one. */
  readonly checkpoint: number | null;
}

const HASH = /^[0-9a-f]{64}$/;

/** Returns the sequence of a verdict's break; null for a valid chain or an invalid checkpoint. */
export function findBrokenSequence(verdict: Verdict): number | null {
  const at = verdict.BrokenAt ?? "";
  if (!HASH.test(at)) return parseRecordId(at);
  // On a fork BrokenAt is a hash; the reason contains the sequence.
  return parseRecordId(/\b[0-9]{12}\b/.exec(verdict.Reason ?? "")?.[0]);
}

/** Faults of the record itself, whose link to the record before holds, or was not reached. */
const FAULTS_OF_RECORD: readonly [pattern: RegExp, link: LinkState][] = [
  [/the digest of the content of|canonical form|is stored in the place of/, "unread"],
  [/the filter fields of|signature names another record| a time |^the time of/, "sound"],
];

/** The break of a chain. */
interface Break {
  /** State of the link to the broken record: a fault of the record itself does not break its link. */
  readonly link: LinkState;
  /** First wrong position: a missing record, or `at` itself. */
  readonly from: number;
  /** Sequence in the verdict. */
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
  const missing = parseRecordId(/is stored where ([0-9]{12}) is missing/.exec(verdict.Reason ?? "")?.[1]);
  const from = missing !== null && missing < at ? missing : at;
  const link = FAULTS_OF_RECORD.find(([pattern]) => pattern.test(verdict.Reason ?? ""))?.[1] ?? "broken";
  return { from, at, link: from < at ? "broken" : link, forked: verdict.ForkDetected };
}

/** Returns the sequences to draw, ascending; 0 is the genesis hash. */
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
  if (sequence === broken.at) return { state: broken.link, left };
  return { state: sequence < broken.at ? "broken" : "unread", left };
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
  if (verdict.Empty) return "The chain has no records to check.";
  const signed =
    end.checkpoint === null
      ? "No checkpoint was signed yet."
      : `The newest checkpoint covers ${formatRecords(end.checkpoint)}.`;
  if (verdict.ChainValid) return `From the genesis hash to ${formatRecordId(end.tip)} every link is valid. ${signed}`;
  if (broken === null) return `Every link is valid, but the newest checkpoint does not match the chain. ${signed}`;
  if (broken.forked) return `${formatRecordId(broken.at)} and another record follow the same predecessor. ${signed}`;
  const before = broken.from === 1 ? "the genesis hash" : formatRecordId(broken.from - 1);
  const gap = broken.from < broken.at ? ` and ${formatRecordId(broken.from)} is missing` : "";
  if (broken.link !== "broken") {
    return `Every record is valid up to ${before}; ${formatRecordId(broken.at)} was altered or damaged. ${signed}`;
  }
  return `Every link is valid up to ${before}${gap}; the chain is broken at ${formatRecordId(broken.at)}. ${signed}`;
}

function formatRecords(records: number): string {
  return records === 1 ? "1 record" : `${records} records`;
}
