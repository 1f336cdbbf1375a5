"""KQL functions that compute hash values with the algorithm xxHash64.

A string is hashed as UTF-8, a datetime and a timespan as the number of 100 ns ticks, a number as its bytes. The formula
of ``hash_combine`` is not documented: its values differ from those of Data Explorer.
"""

import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime

from duckdb_kql import ir

from emulators.kusto.extensions.registry import ANY_NUMBER, add_custom_function
from emulators.kusto.extensions.sql import bind_once, render_expression
from emulators.kusto.extensions.static_types import infer_static_type
from emulators.kusto.python_functions import PythonFunction

SUPPORTED: tuple[str, ...] = (
    "hash",
    "hash_xxhash64",
    "hash_combine (other values than Data Explorer)",
    "hash_many (other values than Data Explorer)",
)

_WHOLE = frozenset({"int", "long", None})
_MASK = (1 << 64) - 1
_PRIMES = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
_STRIPE = 32
_TICKS_BEFORE_1970 = (datetime(1970, 1, 1) - datetime(1, 1, 1)).days * 864_000_000_000  # noqa: DTZ001


def compute_xxhash64(data: bytes, seed: int = 0) -> int:
    """Return the xxHash64 of bytes as an unsigned integer."""
    first, second, third, fourth, fifth = _PRIMES
    position = 0
    if len(data) >= _STRIPE:
        lanes = [(seed + first + second) & _MASK, (seed + second) & _MASK, seed, (seed - first) & _MASK]
        whole = len(data) // _STRIPE * _STRIPE
        for stripe in struct.iter_unpack("<4Q", data[:whole]):
            lanes = [_mix_lane(lane, value) for lane, value in zip(lanes, stripe, strict=True)]
        position = whole
        value = sum(_rotate_bits(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _mix_lane(0, lane)) * first + fourth) & _MASK
    else:
        value = (seed + fifth) & _MASK
    value = (value + len(data)) & _MASK
    while position + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, position)
        value = (_rotate_bits(value ^ _mix_lane(0, word), 27) * first + fourth) & _MASK
        position += 8
    if position + 4 <= len(data):
        (half,) = struct.unpack_from("<I", data, position)
        value = (_rotate_bits(value ^ (half * first & _MASK), 23) * second + third) & _MASK
        position += 4
    for byte in data[position:]:
        value = (_rotate_bits(value ^ (byte * fifth & _MASK), 11) * first) & _MASK
    value = (value ^ (value >> 33)) * second & _MASK
    value = (value ^ (value >> 29)) * third & _MASK
    return value ^ (value >> 32)


def _rotate_bits(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _mix_lane(lane: int, value: int) -> int:
    return (_rotate_bits((lane + value * _PRIMES[1]) & _MASK, 31) * _PRIMES[0]) & _MASK


def _to_signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def compute_hash(kind: str, text: str | None) -> int | None:
    """Return the hash of a value as a signed integer; ``kind`` is its DuckDB type and ``text`` its text form."""
    if text is None:
        return None
    return _to_signed(compute_xxhash64(_encode_value(kind, text)))


def _encode_value(kind: str, text: str) -> bytes:
    encode = _ENCODERS.get(kind)
    return text.encode() if encode is None else encode(text)


def _encode_long(text: str) -> bytes:
    return (int(text) & _MASK).to_bytes(8, "little")


_ENCODERS: Mapping[str, Callable[[str], bytes]] = {
    "BIGINT": _encode_long,
    "HUGEINT": _encode_long,
    "INTEGER": lambda text: (int(text) & 0xFFFFFFFF).to_bytes(4, "little"),
    "DOUBLE": lambda text: struct.pack("<d", float(text)),
    "BOOLEAN": lambda text: b"\1" if text == "true" else b"\0",
    "TIMESTAMP": lambda text: _encode_long(str(int(text) * 10 + _TICKS_BEFORE_1970)),
    "INTERVAL": lambda text: _encode_long(str(int(text) * 10)),
    "UUID": lambda text: uuid.UUID(text).bytes_le,
}


def _compute_remainder(value: int | None, divisor: int | None) -> int | None:
    if value is None or divisor is None or divisor <= 0:
        return None
    return (value & _MASK) % divisor


def _combine_hashes(values: list[int | None]) -> int | None:
    combined = 17
    for value in values:
        if value is None:
            return None
        combined = ((combined * 31) ^ (value & _MASK)) & _MASK
    return _to_signed(combined)


functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_hash_text", compute_hash, ("VARCHAR", "VARCHAR"), "BIGINT"),
    PythonFunction("kql_hash_rest", _compute_remainder, ("BIGINT", "BIGINT"), "BIGINT"),
    PythonFunction("kql_hash_combined", _combine_hashes, ("BIGINT[]",), "BIGINT"),
)
macros: tuple[str, ...] = (
    # The macro copies its argument several times, so that the argument must be a name or a constant.
    (
        "CREATE OR REPLACE MACRO kql_hash(v) AS kql_hash_text(typeof(v), CASE typeof(v) "
        "WHEN 'TIMESTAMP' THEN CAST(epoch_us(CAST(CAST(v AS VARCHAR) AS TIMESTAMP)) AS VARCHAR) "
        "WHEN 'INTERVAL' THEN CAST(epoch_us(CAST(CAST(v AS VARCHAR) AS INTERVAL)) AS VARCHAR) "
        "ELSE CAST(v AS VARCHAR) END)"
    ),
)


def install() -> None:
    """Add the hash functions to the KQL translator library."""
    for name in ("hash", "hash_xxhash64"):
        add_custom_function(name, (1, 2), _render_hash)
    add_custom_function("hash_many", range(2, ANY_NUMBER[-1] + 1), _render_hash_many)
    add_custom_function("hash_combine", range(2, ANY_NUMBER[-1] + 1), _render_hash_combine)


def _render_hash(call: ir.FunctionCall) -> str:
    sql = bind_once([render_expression(call.args[0])], lambda value: f"kql_hash({value})")
    return f"kql_hash_rest({sql}, CAST({render_expression(call.args[1])} AS BIGINT))" if len(call.args) > 1 else sql


def _render_hash_many(call: ir.FunctionCall) -> str:
    values = [bind_once([render_expression(arg)], lambda value: f"kql_hash({value})") for arg in call.args]
    return f"kql_hash_combined([{', '.join(values)}])"


def _render_hash_combine(call: ir.FunctionCall) -> str:
    # Other values than whole numbers are no hashes yet.
    hashes = [arg if infer_static_type(arg) in _WHOLE else ir.FunctionCall("hash", (arg,)) for arg in call.args]
    return f"kql_hash_combined([{', '.join(f'CAST({render_expression(each)} AS BIGINT)' for each in hashes)}])"
