// Verifies receipts (RFC 9942) with a CBOR package and WebCrypto, and prints one result per receipt as JSON.
// The file holds {keys: JWK[], receipts: [{receipt, hash}, {receipt, olderRoot}]}; bytes are hexadecimal.
import { readFileSync } from 'node:fs';
import { decode, encode } from 'cborg';

const SIGN1 = 18;
const strict = { useMaps: true, strict: true, allowIndefinite: false, rejectDuplicateMapKeys: true };
// cborg passes the content of a tag to its decoder, without the tag's number.
strict.tags = { [SIGN1]: (content) => content() };
const { subtle } = globalThis.crypto;

const toBytes = (text) => Uint8Array.from(Buffer.from(text, 'hex'));
const toHex = (bytes) => Buffer.from(bytes).toString('hex');
const digest = async (...parts) => new Uint8Array(await subtle.digest('SHA-256', Buffer.concat(parts)));
const hashNode = (left, right) => digest(Uint8Array.of(1), left, right);

function require(condition, message) {
  if (!condition) throw new Error(message);
}

// RFC 9162 section 2.1.3.2, up to the computed root.
async function computeRoot(leaf, index, size, path) {
  require(index < size, 'the leaf is outside of the tree');
  let [node, place, last] = [await digest(Uint8Array.of(0), leaf), index, size - 1];
  for (const step of path) {
    require(last > 0, 'the path is too long');
    if (place % 2 === 1 || place === last) {
      node = await hashNode(step, node);
      while (place % 2 === 0 && place > 0) [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
    } else {
      node = await hashNode(node, step);
    }
    [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  }
  require(last === 0, 'the path is too short');
  return node;
}

// RFC 9162 section 2.1.4.2, up to the computed newer root.
async function computeNewerRoot(olderRoot, older, size, path) {
  require(older > 0 && older < size, 'the sizes are wrong');
  const steps = Number.isInteger(Math.log2(older)) ? [olderRoot, ...path] : [...path];
  let [place, last] = [older - 1, size - 1];
  while (place % 2 === 1) [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  let [old, node] = [steps[0], steps[0]];
  for (const step of steps.slice(1)) {
    require(last > 0, 'the path is too long');
    if (place % 2 === 1 || place === last) {
      [old, node] = [await hashNode(step, old), await hashNode(step, node)];
      while (place % 2 === 0 && place > 0) [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
    } else {
      node = await hashNode(node, step);
    }
    [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  }
  require(last === 0, 'the path has another length');
  require(toHex(old) === toHex(olderRoot), 'the older root differs');
  return node;
}

async function verify({ receipt, hash, olderRoot }, keys) {
  const bytes = toBytes(receipt);
  require(bytes[0] === 0xd2, 'the tag is not 18');
  const [encoded, unprotected, payload, signature] = decode(bytes, strict);
  const header = decode(encoded, strict);
  require(header.get(1) === -7 && header.get(395) === 1 && payload === null, 'the header is unknown');
  const proofs = unprotected.get(396).get(hash ? -1 : -2);
  require(proofs.length === 1, 'there is not one proof');
  const [first, second, path] = decode(proofs[0], strict);
  const root = hash
    ? await computeRoot(toBytes(hash), second, first, path)
    : await computeNewerRoot(toBytes(olderRoot), first, second, path);
  const jwk = keys.find((each) => each.kid === toHex(header.get(4)));
  require(jwk, 'the key is unknown');
  const key = await subtle.importKey('jwk', jwk, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['verify']);
  const signed = encode(['Signature1', encoded, new Uint8Array(), root]);
  require(await subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, key, signature, signed), 'the signature is wrong');
  return { root: toHex(root), subject: header.get(15).get(2), sizes: hash ? [first] : [first, second] };
}

const { keys, receipts } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const results = [];
for (const each of receipts) {
  results.push(await verify(each, keys).catch((error) => ({ error: error.message })));
}
console.log(JSON.stringify(results));
