"""KQL functions over IPv4 and IPv6 addresses that SQL cannot express.

An IPv4 address is compared with an IPv6 address as its mapped form ``::ffff:a.b.c.d``.
"""

import ipaddress
import re
from collections.abc import Sequence

from emulators.kusto.extensions.scalar_calls import ScalarCall, build_functions, install_calls

_V4_BITS = 32
_V6_BITS = 128
_MAPPED = 0xFFFF << _V4_BITS
_V4_BITS_IN_V6 = _V6_BITS - _V4_BITS
_ADDRESS = re.compile(r"(?<![0-9A-Za-z])\d{1,3}+(?:\.\d{1,3}+){3}(?![0-9A-Za-z])")
_MAX_RANGES = 256
"""Maximum number of CIDR ranges that ipv4_range_to_cidr_list() returns; a range of addresses needs at most 62."""


def _parse_v4(text: str) -> tuple[int, int]:
    """Parse an IPv4 address to an integer and the length of its prefix; raise ValueError if it is not valid."""
    address, slash, prefix = text.strip().partition("/")
    bits = int(prefix) if slash else _V4_BITS
    if not 0 <= bits <= _V4_BITS:
        raise ValueError(text)
    return int(ipaddress.IPv4Address(address)), bits


def _parse_v6(text: str) -> tuple[int, int]:
    """Parse an IPv4 or IPv6 address to an integer of 128 bits and the length of its prefix."""
    address, slash, prefix = text.strip().partition("/")
    if ":" not in address:
        value, bits = _parse_v4(text)
        return _MAPPED | value, bits + _V4_BITS_IN_V6
    bits = int(prefix) if slash else _V6_BITS
    if not 0 <= bits <= _V6_BITS:
        raise ValueError(text)
    value = int(ipaddress.IPv6Address(address))
    if "." in address and value >> _V4_BITS in (0, 0xFFFF):
        # An IPv4 address in the notation of IPv6.
        return _MAPPED | value, bits + _V4_BITS_IN_V6 if bits <= _V4_BITS else bits
    return value, bits


def _mask_address(value: int, bits: int, length: int) -> int:
    return value >> (length - bits) << (length - bits)


def _parse_masked_v4(text: str, prefix: int) -> int:
    value, bits = _parse_v4(text)
    if not 0 <= prefix <= _V4_BITS:
        raise ValueError(prefix)
    return _mask_address(value, min(bits, prefix), _V4_BITS)


def _format_v6(value: int) -> str:
    digits = f"{value:032x}"  # the library writes the end of a mapped IPv4 address with dots
    return ":".join(digits[index : index + 4] for index in range(0, 32, 4))


def _parse_masked_v6(text: str, prefix: int) -> str:
    value, bits = _parse_v6(text)
    if not 0 <= prefix <= _V6_BITS:
        raise ValueError(prefix)
    return _format_v6(_mask_address(value, min(bits, prefix), _V6_BITS))


def _read_v4(address: str, prefix: int | None) -> tuple[int, int]:
    value, bits = (int(address), _V4_BITS) if address.isdigit() else _parse_v4(address)
    if prefix is not None:
        if not 0 <= prefix <= _V4_BITS:
            raise ValueError(prefix)
        bits = min(bits, prefix)
    return _mask_address(value, bits, _V4_BITS), bits


def _format_ipv4(address: str, prefix: int | None) -> str:
    value, _ = _read_v4(address, prefix)
    return str(ipaddress.IPv4Address(value))


def _format_ipv4_mask(address: str, prefix: int | None) -> str:
    value, bits = _read_v4(address, prefix)
    return f"{ipaddress.IPv4Address(value)}/{bits}"


def _compare_v6(one: str, other: str, prefix: int | None) -> int:
    (left, left_bits), (right, right_bits) = _parse_v6(one), _parse_v6(other)
    bits = min(left_bits, right_bits, _V6_BITS if prefix is None else prefix)
    if bits < 0:
        raise ValueError(prefix)
    left, right = _mask_address(left, bits, _V6_BITS), _mask_address(right, bits, _V6_BITS)
    return (left > right) - (left < right)


def _is_in_any_range(addresses: Sequence[str], text: str) -> bool:
    return any(_is_in_range(text, each) for each in addresses)


def _is_in_range(text: str, limits: str) -> bool:
    try:
        return _compare_v6(text, limits, None) == 0
    except ValueError:
        return False


def _is_in_any_v4_range(text: str, ranges: Sequence[str]) -> bool:
    _parse_v4(text)
    return _is_in_any_range(ranges, text)


def _is_in_any_v6_range(text: str, ranges: Sequence[str]) -> bool:
    _parse_v6(text)
    return _is_in_any_range(ranges, text)


def _find_addresses(text: str) -> list[str]:
    found = (match.group() for match in _ADDRESS.finditer(text))
    return [each for each in found if all(int(part) < 256 for part in each.split("."))]  # noqa: PLR2004


def _has_any_ipv4(text: str, wanted: Sequence[str]) -> bool:
    found = set(_find_addresses(text))
    return any(each in found for each in wanted)


def _has_any_ipv4_prefix(text: str, prefixes: Sequence[str]) -> bool:
    found = _find_addresses(text)
    return any(_has_prefix(each, prefix) for prefix in prefixes for each in found)


def _has_prefix(address: str, prefix: str) -> bool:
    parts = prefix.split(".")
    is_whole = len(parts) == 4 and parts[-1] != ""  # noqa: PLR2004
    return address == prefix if is_whole else prefix.endswith(".") and address.startswith(prefix)


def _list_cidr_ranges(first: str, last: str) -> list[str]:
    start, end = ipaddress.IPv4Address(first.strip()), ipaddress.IPv4Address(last.strip())
    return [str(each) for each in ipaddress.summarize_address_range(start, end)][:_MAX_RANGES]


CALLS = (
    ScalarCall("parse_ipv4_mask", _parse_masked_v4, "string long", "long"),
    ScalarCall("parse_ipv6_mask", _parse_masked_v6, "string long", "string"),
    ScalarCall("format_ipv4", _format_ipv4, "any long?", "string", ""),
    ScalarCall("format_ipv4_mask", _format_ipv4_mask, "any long?", "string", ""),
    ScalarCall("ipv6_compare", _compare_v6, "string string long?", "long"),
    ScalarCall("ipv6_is_match", lambda x, y, p: _compare_v6(x, y, p) == 0, "string string long?", "bool"),
    ScalarCall("ipv6_is_in_range", lambda x, y: _compare_v6(x, y, None) == 0, "string string", "bool"),
    ScalarCall("ipv6_is_in_any_range", _is_in_any_v6_range, "string *", "bool"),
    ScalarCall("ipv4_is_in_any_range", _is_in_any_v4_range, "string *", "bool"),
    ScalarCall("ipv4_netmask_suffix", lambda text: _parse_v4(text)[1], "string", "long"),
    ScalarCall("has_ipv4", lambda text, ip: _has_any_ipv4(text, [ip]), "text string", "bool", missing=False),
    ScalarCall("has_ipv4_prefix", lambda text, ip: _has_any_ipv4_prefix(text, [ip]), "text string", "bool", False),
    ScalarCall("has_any_ipv4", _has_any_ipv4, "text *", "bool", missing=False),
    ScalarCall("has_any_ipv4_prefix", _has_any_ipv4_prefix, "text *", "bool", missing=False),
    ScalarCall("ipv4_range_to_cidr_list", _list_cidr_ranges, "string string", "dynamic"),
)
SUPPORTED = tuple(call.name for call in CALLS)
functions = build_functions(CALLS)
macros: tuple[str, ...] = ()


def install() -> None:
    """Add the functions over addresses to the KQL translator library."""
    install_calls(CALLS)
