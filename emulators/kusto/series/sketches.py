"""Aggregates that summarise a group as a t-digest or as a set of hashes, and merge such results.

This module is separate from the functions that read the results, because translator processes do not load NumPy.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from emulators.kusto.extensions.digests import REGISTER_BITS, REGISTERS, ValuesAndWeights, extract_values_and_weights
from emulators.kusto.extensions.scalar_calls import parse_dynamic

MAX_CENTROIDS = 1000
MAX_HASHES = 1024
_DIGEST_VERSION = [7]
_SET_VERSION = [1024, 14]
_REST_BITS = 64 - REGISTER_BITS
_HASH_RANGE = 1 << 63

type Numbers = np.ndarray[Any, np.dtype[np.float64]]
type Hashes = np.ndarray[Any, np.dtype[np.int64]]


def summarize_values_as_digest(values: Numbers | None, weights: Numbers | None) -> Mapping[str, Any]:
    """Build the t-digest of some numbers, ignoring NaN and infinity; return null if there are no numbers.

    Each number has the weight 1 if ``weights`` is None.
    """
    given = np.zeros(0) if values is None else values
    counts = np.ones(len(given)) if weights is None else weights
    known = np.isfinite(given) & (counts > 0)
    return {"digest": _build_digest_json(given[known], counts[known]) if known.any() else None}


def _build_digest_json(values: Numbers, weights: Numbers) -> str:
    different, positions = np.unique(values, return_inverse=True)
    merged, counts = different, np.bincount(positions, weights, len(different))
    while len(merged) > MAX_CENTROIDS:
        starts = np.arange(0, len(merged), 2)
        totals = np.add.reduceat(counts, starts)
        merged, counts = np.add.reduceat(merged * counts, starts) / totals, totals
    return orjson.dumps(
        [_DIGEST_VERSION, merged.tolist(), [_to_integer_if_whole(each) for each in counts.tolist()]]
    ).decode()


def _to_integer_if_whole(weight: float) -> float:
    return int(weight) if float(weight).is_integer() else weight


def merge_digests(digest_texts: Sequence[str | None] | None) -> Mapping[str, Any]:
    """Merge several t-digests (JSON texts) into one; return null if no text is a t-digest."""
    found = [parse_dynamic(each) for each in digest_texts or () if each is not None]
    valid = [each for each in map(_parse_digest_or_none, found) if each is not None]
    if not valid:
        return {"merged": None}
    # One conversion of all pairs would hold the interpreter for too long.
    parts = [np.array(each, dtype=float).reshape(-1, 2) for each in valid]
    pairs = np.concatenate(parts)
    return {"merged": _build_digest_json(pairs[:, 0], pairs[:, 1])}


def _parse_digest_or_none(digest: Any) -> ValuesAndWeights | None:
    """Return the values and weights of a t-digest; None if it is malformed."""
    try:
        return extract_values_and_weights(digest)
    except (ValueError, TypeError, OverflowError):
        return None


def summarize_hashes_as_set(hashes: Hashes | None) -> Mapping[str, Any]:
    """Build a set of hashes (result of ``hll``) from distinct hash values; return null without hash values."""
    return {"hashes": None if hashes is None or not len(hashes) else _build_hash_set_json(hashes)}


def _build_hash_set_json(hashes: Hashes) -> str:
    if len(hashes) <= MAX_HASHES:
        return orjson.dumps([_SET_VERSION, [str(each) for each in np.sort(hashes).tolist()], []]).decode()
    return _encode_registers_as_json(_add_hashes_to_registers(hashes, np.zeros(REGISTERS, np.int64)))


def _encode_registers_as_json(registers: Hashes) -> str:
    return orjson.dumps([_SET_VERSION, [], registers.tolist()]).decode()


def _add_hashes_to_registers(hashes: Hashes, registers: Hashes) -> Hashes:
    """Add hashes to the registers of a HyperLogLog sketch, and return the registers."""
    values = hashes.view(np.uint64)
    index, rest = values >> np.uint64(_REST_BITS), values & np.uint64((1 << _REST_BITS) - 1)
    # The exponent of a double of at most 53 bits is the number of its bits.
    ranks = _REST_BITS + 1 - np.frexp(rest.astype(np.float64))[1]
    filled = registers.copy()
    np.maximum.at(filled, index.astype(np.int64), ranks.astype(np.int64))
    return filled


class _HashSet(NamedTuple):
    """Content of a result of ``hll``: the hashes of a small set, and the registers of a large set."""

    hashes: list[int]
    registers: list[int]


def _parse_hash_set_if_valid(text: str) -> _HashSet | None:
    try:
        _, hashes, registers = orjson.loads(text)
        read = _HashSet([int(each) for each in hashes], [int(each) for each in registers])
    except (ValueError, TypeError, OverflowError):
        return None
    is_valid = len(read.registers) in (0, REGISTERS) and all(
        -_HASH_RANGE <= each < _HASH_RANGE for each in itertools.chain(*read)
    )
    return read if is_valid else None


def merge_hash_sets(set_texts: Sequence[str | None] | None) -> str | None:
    """Merge several results of ``hll`` (JSON texts) into one; None if no text is such a result."""
    hashes: set[int] = set()
    registers: Hashes | None = None
    is_valid = False
    for each in set_texts or ():
        if each is None or (found := _parse_hash_set_if_valid(each)) is None:
            continue
        is_valid = True
        hashes.update(found.hashes)
        if found.registers:
            dense = np.array(found.registers, np.int64)
            registers = dense if registers is None else np.maximum(registers, dense)
    if not is_valid:
        return None
    listed = np.array(sorted(hashes), np.int64)
    return (
        _build_hash_set_json(listed)
        if registers is None
        else _encode_registers_as_json(_add_hashes_to_registers(listed, registers))
    )


def build_merged_set_output(set_texts: Sequence[str | None] | None) -> Mapping[str, Any]:
    """Return the result of `merge_hash_sets` as the output ``merged`` of an SQL function."""
    return {"merged": merge_hash_sets(set_texts)}
