import { expect, test } from "vitest";
import type { Verdict } from "@/api/provenance.ts";
import { buildPicture } from "@/pages/audit/picture.ts";
import { verifyToEnd } from "@/pages/audit/verification.ts";

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

/** A chain of 40 records, that grows to 42 before and to 50 after it is verified. */
function growing(verdict: Verdict, checkpoint: number | null = null) {
  let tip = 40;
  const verify = () => {
    tip = 50;
    return Promise.resolve(verdict);
  };
  return verifyToEnd({ verify, tip: () => Promise.resolve(tip), checkpoint: () => Promise.resolve(checkpoint) });
}

test("records that arrive after the verdict are not in the picture of a sound chain", async () => {
  const { verdict, end } = await growing(SOUND);
  expect(end.tip).toBe(42);
  expect(buildPicture(verdict, end).text).toContain("to 000000000042 every link is valid");
});

test("a verdict that counts nothing is taken for what stood there before", async () => {
  expect((await growing({ ...SOUND, Valid: false, Reason: "the record's digest differs" })).end.tip).toBe(40);
  const misfit = { ...SOUND, ChainValid: false, BrokenAt: "DomainEvents/1f0c/000000000040", Reason: "not the one" };
  expect((await growing(misfit)).end.tip).toBe(40);
});

test("a checkpoint signed after the verdict is not shown as verified, nor as missing", async () => {
  const { verdict, end } = await growing(SOUND, 48);
  const picture = buildPicture(verdict, end);
  expect(picture.nodes.map((node) => `${node.sequence ?? 0} ${node.state}`)).toEqual([
    "0 sound",
    "1 sound",
    "42 sound",
    "48 unread",
  ]);
  expect(picture.links.at(-1)?.state).toBe("unread");
  expect(picture.checkpoint?.node.state).toBe("unread");
});

test("of a broken chain the newest end is shown, as not verified", async () => {
  const { verdict, end } = await growing({ ...SOUND, ChainValid: false, BrokenAt: "000000000041", Reason: "broken" });
  expect(buildPicture(verdict, end).nodes.at(-1)).toMatchObject({ sequence: 50, state: "unread" });
});
