import { describe, expect, it } from "vitest";
import type { Verdict } from "@/api/provenance.ts";
import { buildPicture, findBrokenSequence } from "@/pages/audit/picture.ts";

const SOUND: Verdict = {
  Valid: null,
  ChainValid: true,
  Empty: false,
  Record: null,
  RecomputedHash: null,
  BrokenAt: null,
  ForkDetected: false,
  Reason: "42 records, all sound",
  Target: "DomainEvents",
};

function broken(at: string, reason = "", forked = false): Verdict {
  return { ...SOUND, ChainValid: false, BrokenAt: at, Reason: reason, ForkDetected: forked };
}

const id = (sequence: number): string => String(sequence).padStart(12, "0");

function states(picture: ReturnType<typeof buildPicture>): string[] {
  return picture.nodes.map((node) => `${node.sequence ?? 0} ${node.state}`);
}

describe("the picture of a chain", () => {
  it("shows genesis, first record, checkpoint and tip of a sound chain", () => {
    const picture = buildPicture(SOUND, { tip: 42, checkpoint: 40 });
    expect(states(picture)).toEqual(["0 sound", "1 sound", "40 sound", "42 sound"]);
    expect(picture.links).toEqual([
      { state: "sound", left: 0 },
      { state: "sound", left: 38 },
      { state: "sound", left: 1 },
    ]);
    expect(picture.nodes.at(-1)?.kind).toBe("tip");
    expect(picture.checkpoint).toMatchObject({ at: 2, node: { state: "sound" } });
    expect(picture.text).toBe(
      "From the genesis hash to 000000000042 every link is valid. The newest checkpoint covers 40 records.",
    );
  });

  it("shows a chain of one record, unsigned", () => {
    const picture = buildPicture(SOUND, { tip: 1, checkpoint: null });
    expect(states(picture)).toEqual(["0 sound", "1 sound"]);
    expect([picture.checkpoint, picture.branch]).toEqual([null, null]);
  });

  it("shows the links around a break at its place", () => {
    const picture = buildPicture(broken(id(17)), { tip: 42, checkpoint: 40 });
    expect(states(picture)).toEqual([
      "0 sound",
      "1 sound",
      "16 sound",
      "17 broken",
      "18 unread",
      "40 unread",
      "42 unread",
    ]);
    expect(picture.links.map((link) => link.state)).toEqual(["sound", "sound", "broken", "unread", "unread", "unread"]);
    expect(picture.checkpoint?.node.state).toBe("unread");
    expect(picture.text).toContain("Every link is valid up to 000000000016; the chain is broken at 000000000017.");
  });

  it("marks an altered record, and no link that the verification found sound", () => {
    const filter = buildPicture(broken(id(17), `the filter fields of ${id(17)} differ from its content: EntityID`), {
      tip: 42,
      checkpoint: null,
    });
    expect(states(filter).slice(2, 4)).toEqual(["16 sound", "17 broken"]);
    expect(filter.links.map((link) => link.state)).toEqual(["sound", "sound", "sound", "unread", "unread"]);
    const digest = `the digest of the content of ${id(17)} differs from its stored Hash`;
    const altered = buildPicture(broken(id(17), digest), { tip: 42, checkpoint: null });
    expect(altered.links[2]?.state).toBe("unread");
    expect(altered.text).toContain(`Every record is valid up to ${id(16)}; ${id(17)} was altered or damaged.`);
  });

  it("shows a break of the first record beside the genesis hash", () => {
    const picture = buildPicture(broken(id(1)), { tip: 3, checkpoint: null });
    expect(states(picture)).toEqual(["0 sound", "1 broken", "2 unread", "3 unread"]);
    expect(picture.links[0]?.state).toBe("broken");
    expect(picture.text).toContain("up to the genesis hash");
  });

  it("shows a tail that was cut off as missing", () => {
    const picture = buildPicture(broken(id(31), "000000000031 is missing: the checkpoint counts 40 records"), {
      tip: 30,
      checkpoint: 40,
    });
    expect(states(picture)).toEqual(["0 sound", "1 sound", "30 sound", "31 missing", "40 missing"]);
    expect(picture.links.at(-2)?.state).toBe("broken");
  });

  it("shows records that were taken out of the middle as missing", () => {
    const verdict = broken(id(33), "000000000033 is stored where 000000000030 is missing");
    const picture = buildPicture(verdict, { tip: 42, checkpoint: null });
    expect(states(picture)).toEqual([
      ...["0 sound", "1 sound", "29 sound", "30 missing", "32 missing"],
      ...["33 broken", "34 unread", "42 unread"],
    ]);
    expect(picture.links.map((link) => link.state).slice(1, 6)).toEqual([
      "sound",
      "broken",
      "broken",
      "broken",
      "unread",
    ]);
    expect(picture.text).toContain(
      "is valid up to 000000000029 and 000000000030 is missing; the chain is broken at 000000000033",
    );
    const first = buildPicture(broken(id(3), "000000000003 is stored where 000000000001 is missing"), {
      tip: 4,
      checkpoint: null,
    });
    expect(states(first)).toEqual(["0 sound", "1 missing", "2 missing", "3 broken", "4 unread"]);
  });

  it("shows a fork as a branch beside the record whose predecessor is claimed twice", () => {
    const verdict = broken("ab".repeat(32), "fork: this record and 000000000005 have the same PreviousHash", true);
    expect(findBrokenSequence(verdict)).toBe(5);
    const picture = buildPicture(verdict, { tip: 9, checkpoint: null });
    expect(states(picture)).toEqual(["0 sound", "1 sound", "4 sound", "5 sound", "6 unread", "9 unread"]);
    expect(picture.branch).toMatchObject({ at: 3, node: { kind: "branch", state: "broken" } });
  });

  it("shows a checkpoint that does not fit", () => {
    const picture = buildPicture(broken("DomainEvents/1f0c/000000000040", "the chain is not the one"), {
      tip: 42,
      checkpoint: 40,
    });
    expect(picture.nodes.every((node) => node.state === "sound")).toBe(true);
    expect(picture.checkpoint?.node.state).toBe("broken");
    expect(picture.text).toContain("does not match the chain");
  });

  it("says that an empty chain was not checked", () => {
    expect(buildPicture({ ...SOUND, Empty: true }, { tip: 0, checkpoint: null }).text).toContain("no records to check");
  });
});
