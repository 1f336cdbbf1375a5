"""Partition keys of items: values from documents and headers, and their hashes."""

import itertools
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from emulators.cosmos.sql_values import UNDEFINED
from emulators.cosmos.wire import CosmosError

type KeyComponent = tuple[str, str | float | None]
"""Type and value of one part of a partition key.

The type is included because Python treats True and 1 as equal, but Cosmos DB does not.
"""

type PartitionKey = tuple[KeyComponent, ...]


class HashRange(NamedTuple):
    """Range of effective partition keys, which are hexadecimal texts: `start` is inclusive, `end` exclusive."""

    start: str
    end: str


UNDEFINED_COMPONENT: KeyComponent = ("undefined", None)
_MAX_VALUE_BYTES = 2048
_MASK = (1 << 64) - 1


def parse_partition_key_header(header_json: str, key_paths: Sequence[str]) -> PartitionKey:
    """Parse the partition key in a request header.

    Args:
        header_json: The header: a JSON array with one value for each path.
        key_paths: The paths of the partition key in the container's items.

    Raises:
        CosmosError: 400 if the header is missing, is not a JSON array, or has the wrong number of values.
    """
    if not header_json:
        raise CosmosError(400, "PartitionKey value must be supplied for this operation.")
    try:
        values = orjson.loads(header_json)
    except orjson.JSONDecodeError as error:
        raise CosmosError(400, "The partition key header is not valid JSON.") from error
    if not isinstance(values, list) or len(values) != len(key_paths):
        raise CosmosError(
            400,
            "Partition key provided either doesn't correspond to definition in the collection"
            " or doesn't match partition key field values specified in the document.",
            1001,
        )
    return tuple(_key_component_from_header(value) for value in values)


def partition_key_from_document(document: Mapping[str, Any], key_paths: Sequence[str]) -> PartitionKey:
    """Return the partition key of a document; a missing value, an object or an array counts as undefined."""
    return tuple(
        _key_component_from_value(_get_value_or_undefined(document, split_property_path(path))) for path in key_paths
    )


def split_property_path(path: str) -> list[str]:
    """Split the path of a JSON property, such as `/a/"b c"`, into property names."""
    return [part[1:-1] if part[:1] == '"' and part[-1:] == '"' else part for part in path.split("/")[1:]]


def hash_partition_key(key: PartitionKey) -> str:
    """Hash a partition key to the effective partition key: 32 hexadecimal digits for each value (hash version 2)."""
    return "".join(_hash_key_component(component) for component in key)


def split_hash_range_evenly(range_count: int) -> list[HashRange]:
    """Split the range of all hash values into this number of equal ranges."""
    bounds = ["", *(f"{(0x40 << 120) * index // range_count:032X}" for index in range(1, range_count)), "FF"]
    return [HashRange(start, end) for start, end in itertools.pairwise(bounds)]


def _key_component_from_header(value: object) -> KeyComponent:
    if value == {}:
        return UNDEFINED_COMPONENT
    if isinstance(value, dict | list):
        raise CosmosError(400, "Partition key values must be strings, numbers, booleans or null.")
    return _key_component_from_value(value)


def _get_value_or_undefined(document: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = document
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return UNDEFINED
        value = value[name]
    return value


def _key_component_from_value(value: Any) -> KeyComponent:
    """Return the part of a partition key for a value in a document; an object or an array counts as undefined."""
    match value:
        case None:
            return ("null", None)
        case bool() as flag:
            return ("boolean", float(flag))
        case int() | float() as number:
            return ("number", float(number))
        case str() as text:
            if len(text.encode()) > _MAX_VALUE_BYTES:
                raise CosmosError(400, f"Partition key value exceeds {_MAX_VALUE_BYTES} bytes.")
            return ("string", text)
        case _:
            return UNDEFINED_COMPONENT


def _hash_key_component(component: KeyComponent) -> str:
    digest = bytearray(reversed(_compute_murmur3(_encode_key_component(component))))
    digest[0] &= 0x3F  # all hashes are below FF, the end of the last range
    return digest.hex().upper()


def _encode_key_component(component: KeyComponent) -> bytes:
    match component:
        case ("null", _):
            return b"\x01"
        case ("boolean", flag):
            return b"\x03" if flag else b"\x02"
        case ("number", float() as number):
            return b"\x05" + struct.pack("<d", number)
        case ("string", str() as text):
            return b"\x08" + text.encode() + b"\xff"
        case _:
            return b"\x00"


def _compute_murmur3(data: bytes) -> bytes:
    """Compute MurmurHash3 x64 128 with seed 0 (Austin Appleby, public domain)."""
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for start in range(0, whole, 16):
        k1, k2 = struct.unpack_from("<QQ", data, start)
        h1 = ((_rotate_left_64_bits(h1 ^ _mix_first_murmur3_half(k1), 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 = ((_rotate_left_64_bits(h2 ^ _mix_second_murmur3_half(k2), 31) + h1) * 5 + 0x38495AB5) & _MASK
    k1, k2 = struct.unpack("<QQ", data[whole:].ljust(16, b"\0"))
    h1 = h1 ^ _mix_first_murmur3_half(k1) ^ len(data)
    h2 = h2 ^ _mix_second_murmur3_half(k2) ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _finalize_murmur3_half(h1), _finalize_murmur3_half(h2)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return struct.pack("<QQ", h1, h2)


def _rotate_left_64_bits(value: int, positions: int) -> int:
    return ((value << positions) | (value >> (64 - positions))) & _MASK


def _mix_first_murmur3_half(k: int) -> int:
    return _rotate_left_64_bits(k * 0x87C37B91114253D5 & _MASK, 31) * 0x4CF5AD432745937F & _MASK


def _mix_second_murmur3_half(k: int) -> int:
    return _rotate_left_64_bits(k * 0x4CF5AD432745937F & _MASK, 33) * 0x87C37B91114253D5 & _MASK


def _finalize_murmur3_half(value: int) -> int:
    value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ (value >> 33)
