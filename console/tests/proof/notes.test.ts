import { describe, expect, it } from "vitest";
import { fromBase64, toBase64 } from "@/proof/bytes.ts";
import { toRawSignature } from "@/proof/ecdsa.ts";
import { buildOrigin, NoteError, openCheckpoint, parseKeySet, parseVerifierKey } from "@/proof/notes.ts";
import { createSigningKey, formatKeyLine, toDer } from "./keys.ts";
import { proofs } from "./vectors.ts";

const key = await parseVerifierKey(proofs.verifierKey);
const note = proofs.checkpoints.at(-1)?.signedNote ?? "";

describe("checkpoints", () => {
  it("open when the key signed them, and say what they are of", async () => {
    for (const made of proofs.checkpoints) {
      const opened = await openCheckpoint(made.signedNote, [key]);
      expect([opened.origin, opened.size, toBase64(opened.root)]).toEqual([made.origin, made.size, made.rootHash]);
      expect(opened.origin).toBe(buildOrigin(proofs.workspace, proofs.target, proofs.scopeKey));
    }
  });

  it("are refused when one character of them changed", async () => {
    const text = note.lastIndexOf("\n\n");
    for (let place = 0; place < text; place += 1) {
      const other = `${note.slice(0, place)}${note[place] === "1" ? "2" : "1"}${note.slice(place + 1)}`;
      await expect(openCheckpoint(other, [key])).rejects.toThrow(NoteError);
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
      await expect(openCheckpoint(none, [key])).rejects.toThrow(NoteError);
    }
  });

  it("are not trusted under another key, whose signature is unknown if it has the same name", async () => {
    const other = await parseVerifierKey((await createSigningKey()).line);
    expect((await openCheckpoint(note, [other])).unknownKey).toBe(key.id);
    expect((await openCheckpoint(note, [other, key])).unknownKey).toBe("");
    const stranger = await parseVerifierKey((await createSigningKey("oi-provenance/plant-b")).line);
    await expect(openCheckpoint(note, [stranger])).rejects.toThrow("not signed by");
    const renamed = note.replace("\u2014 oi-provenance/plant-a ", "\u2014 oi-provenance/plant-b ");
    await expect(openCheckpoint(renamed, [key, stranger])).rejects.toThrow("not signed by");
  });

  it("are refused when one of two known signatures is wrong", async () => {
    const added = await createSigningKey();
    const keys = [key, await parseVerifierKey(added.line)];
    const text = `${note.slice(0, note.lastIndexOf("\n\n"))}\n`;
    expect((await openCheckpoint(note + (await added.sign(text)), keys)).size).toBe(13);
    await expect(openCheckpoint(note + (await added.sign("other\n")), keys)).rejects.toThrow("is wrong");
  });

  it("take signatures of others beside the key's own", async () => {
    const line = `\u2014 witness.example ${toBase64(new Uint8Array(68))}\n`;
    expect((await openCheckpoint(note + line, [key])).size).toBe(13);
  });

  it("are refused when what is signed is no checkpoint", async () => {
    const signing = await createSigningKey();
    const known = [await parseVerifierKey(signing.line)];
    for (const text of ["x\n", "origin\n01\nAAAA\n", `origin\n1\n${toBase64(new Uint8Array(31))}\n`]) {
      const signedNote = `${text}\n${await signing.sign(text)}`;
      await expect(openCheckpoint(signedNote, known)).rejects.toThrow("not a checkpoint");
    }
  });
});

describe("key sets", () => {
  it("have the keys of the lines", async () => {
    const keys = [await createSigningKey(), await createSigningKey()];
    const parsed = await parseKeySet({ keys: keys.map(({ jwk }) => jwk) }, "oi-provenance/plant-a");
    const lines = await Promise.all(keys.map(({ line }) => parseVerifierKey(line)));
    expect(parsed.map(({ name, id, spki }) => [name, id, spki])).toEqual(
      lines.map(({ name, id, spki }) => [name, id, spki]),
    );
  });

  it("are refused in another form or with another curve", async () => {
    for (const set of [null, "text", {}, { keys: 1 }, { keys: [null] }, { keys: [{ kty: "EC", crv: "P-384" }] }]) {
      await expect(parseKeySet(set, "k")).rejects.toThrow(NoteError);
    }
  });
});

describe("verifier keys", () => {
  it("are refused with another id, type, form or curve", async () => {
    const [name = "", id = "", encoded = ""] = proofs.verifierKey.split(/\+(.{8})\+/);
    const spki = fromBase64(encoded)?.slice(1) ?? new Uint8Array();
    const curve = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-384" }, true, ["sign", "verify"]);
    const p384 = new Uint8Array(await crypto.subtle.exportKey("spki", curve.publicKey));
    const refused = [
      "",
      "name",
      `${name}+00000000+${encoded}`,
      `${name}+${id}+%%%`,
      await formatKeyLine(name, spki, 1),
    ];
    for (const line of [...refused, await formatKeyLine(name, p384), await formatKeyLine(name, new Uint8Array(91))]) {
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
    expect(toRawSignature(toDer(Uint8Array.from([...high, ...high])))).toEqual(Uint8Array.from([...high, ...high]));
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
