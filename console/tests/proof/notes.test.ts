import { describe, expect, it } from "vitest";
import { type Bytes, fromBase64, toBase64 } from "@/proof/bytes.ts";
import { toRawSignature } from "@/proof/ecdsa.ts";
import { buildOrigin, NoteError, openCheckpoint, parseVerifierKey } from "@/proof/notes.ts";
import { proofs } from "./vectors.ts";

const key = await parseVerifierKey(proofs.verifierKey);
const note = proofs.checkpoints.at(-1)?.signedNote ?? "";

/** Another key of the same name: made here. */
async function otherKey(): Promise<string> {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  return keyLine("oi-provenance/plant-a", new Uint8Array(await crypto.subtle.exportKey("spki", pair.publicKey)));
}

async function keyLine(name: string, spki: Bytes, type = 2): Promise<string> {
  const id = new Uint8Array(await crypto.subtle.digest("SHA-256", spki)).slice(0, 4);
  const hex = Array.from(id, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${name}+${hex}+${toBase64(Uint8Array.of(type, ...spki))}`;
}

describe("checkpoints", () => {
  it("open when the key signed them, and say what they are of", async () => {
    for (const made of proofs.checkpoints) {
      const opened = await openCheckpoint(made.signedNote, key);
      expect([opened.origin, opened.size, toBase64(opened.root)]).toEqual([made.origin, made.size, made.rootHash]);
      expect(opened.origin).toBe(buildOrigin(proofs.workspace, proofs.target, proofs.scopeKey));
    }
  });

  it("are refused when one character of them changed", async () => {
    const text = note.lastIndexOf("\n\n");
    for (let place = 0; place < text; place += 1) {
      const other = `${note.slice(0, place)}${note[place] === "1" ? "2" : "1"}${note.slice(place + 1)}`;
      await expect(openCheckpoint(other, key)).rejects.toThrow(NoteError);
    }
  });

  it("are refused in another form", async () => {
    for (const none of [
      "",
      "\n\n",
      note.trimEnd(),
      note.replace("\u2014", "-"),
      `${note}\n`,
      note.replace("\n", "\r\n"),
    ]) {
      await expect(openCheckpoint(none, key)).rejects.toThrow(NoteError);
    }
  });

  it("are refused under another key, of the same name too", async () => {
    await expect(openCheckpoint(note, await parseVerifierKey(await otherKey()))).rejects.toThrow("not signed by");
  });

  it("take signatures of others beside the key's own", async () => {
    const line = `\u2014 witness.example ${toBase64(new Uint8Array(68))}\n`;
    expect((await openCheckpoint(note + line, key)).size).toBe(13);
  });

  it("are refused when what is signed is no checkpoint", async () => {
    const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
    const spki = new Uint8Array(await crypto.subtle.exportKey("spki", pair.publicKey));
    const line = await keyLine("k", spki);
    const id = line.split("+")[1] ?? "";
    for (const text of ["x\n", "origin\n01\nAAAA\n", `origin\n1\n${toBase64(new Uint8Array(31))}\n`]) {
      const raw = await crypto.subtle.sign(
        { name: "ECDSA", hash: "SHA-256" },
        pair.privateKey,
        new TextEncoder().encode(text),
      );
      const signature = [...(id.match(/../g) ?? [])].map((pair) => Number.parseInt(pair, 16));
      const signedNote = `${text}\n\u2014 k ${toBase64(Uint8Array.from([...signature, ...der(new Uint8Array(raw))]))}\n`;
      await expect(openCheckpoint(signedNote, await parseVerifierKey(line))).rejects.toThrow("not a checkpoint");
    }
  });
});

describe("verifier keys", () => {
  it("are refused with another id, type, form or curve", async () => {
    const [name = "", id = "", encoded = ""] = proofs.verifierKey.split(/\+(.{8})\+/);
    const spki = fromBase64(encoded)?.slice(1) ?? new Uint8Array();
    const curve = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-384" }, true, ["sign", "verify"]);
    const p384 = new Uint8Array(await crypto.subtle.exportKey("spki", curve.publicKey));
    const refused = ["", "name", `${name}+00000000+${encoded}`, `${name}+${id}+%%%`, await keyLine(name, spki, 1)];
    for (const line of [...refused, await keyLine(name, p384), await keyLine(name, new Uint8Array(91))]) {
      await expect(parseVerifierKey(line)).rejects.toThrow(NoteError);
    }
  });

  it("are read with blanks around them", async () => {
    expect((await parseVerifierKey(`  ${proofs.verifierKey}\n`)).name).toBe("oi-provenance/plant-a");
  });
});

describe("origins", () => {
  it("encode all but the unreserved characters of RFC 3986", () => {
    expect(buildOrigin("p", "DomainEvents", "a/b (c)*!'~-._ü")).toBe(
      "oi-provenance/p/DomainEvents/a%2Fb%20%28c%29%2A%21%27~-._%C3%BC",
    );
    expect(buildOrigin("plant a", "PlatformConfig")).toBe("oi-provenance/plant%20a/PlatformConfig");
  });
});

describe("DER signatures", () => {
  const short = Uint8Array.of(0x30, 6, 2, 1, 5, 2, 1, 7);

  it("become r and s of 32 bytes", () => {
    const raw = toRawSignature(short);
    expect([raw?.length, raw?.[31], raw?.[63]]).toEqual([64, 5, 7]);
    const high = new Uint8Array(32).fill(0x80);
    expect(toRawSignature(der(Uint8Array.from([...high, ...high])))).toEqual(Uint8Array.from([...high, ...high]));
  });

  it("are refused when they are not strictly DER", () => {
    const refused = [
      [],
      [0x30],
      [0x31, 6, 2, 1, 5, 2, 1, 7],
      [0x30, 7, 2, 1, 5, 2, 1, 7],
      [0x30, 6, 2, 1, 5, 2, 1, 7, 0],
      [0x30, 7, 2, 2, 0, 5, 2, 1, 7],
      [0x30, 6, 2, 1, 0x85, 2, 1, 7],
      [0x30, 5, 2, 0, 2, 1, 7],
      [0x30, 3, 2, 1, 5],
      [0x30, 9, 2, 1, 5, 2, 1, 7, 2, 1, 9],
      [0x30, 38, 2, 33, ...new Array(33).fill(1), 2, 1, 7],
    ];
    for (const bytes of refused) expect(toRawSignature(Uint8Array.from(bytes))).toBeNull();
  });
});

/** Returns the DER form of r and s. */
function der(raw: Bytes): Bytes {
  const [r, s] = [integer([...raw.slice(0, 32)]), integer([...raw.slice(32)])];
  return Uint8Array.of(0x30, r.length + s.length, ...r, ...s);
}

function integer(digits: number[]): number[] {
  while (digits.length > 1 && digits[0] === 0) digits.shift();
  const padded = (digits[0] ?? 0) > 0x7f ? [0, ...digits] : digits;
  return [2, padded.length, ...padded];
}
