"""KQL functions and plugins over IPv4 and IPv6 addresses that SQL cannot express.

An IPv4 address is compared with an IPv6 address as its mapped form ``::ffff:a.b.c.d``. The plugins ``ipv4_lookup`` and
``ipv6_lookup`` join rows, by a column with addresses or networks, with a table of networks. The addresses of a network
are a range of integers. Two such ranges are either disjoint, or one contains the other. Therefore the plugins only test
whether the two ranges have a common address.
"""

import dataclasses
import ipaddress
import re
from collections.abc import Sequence

from duckdb_kql import ir, schema, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.names import find_argument_name
from emulators.kusto.extensions.pipeline import (
    ExpressionReplacer,
    find_columns_of_readable_tables,
    replace_query_expressions,
)
from emulators.kusto.extensions.plugins import PluginParser, add_plugin, check_column_exists
from emulators.kusto.extensions.scalar_calls import ScalarCall, build_python_functions, install_scalar_calls
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import Sql, quote_name
from emulators.kusto.extensions.tree import ParseNode, get_line_and_column
from emulators.kusto.extensions.window_plan import choose_unused_prefix
from emulators.kusto.python_functions import PythonFunction
from emulators.kusto.stop_events import EXECUTION

_V4_BITS = 32
_V6_BITS = 128
_MAPPED = 0xFFFF << _V4_BITS
_V4_BITS_IN_V6 = _V6_BITS - _V4_BITS
_ADDRESS = re.compile(r"(?<![0-9A-Za-z])\d{1,3}+(?:\.\d{1,3}+){3}(?![0-9A-Za-z])")
_MAX_RANGES = 256
"""Maximum number of CIDR ranges that ipv4_range_to_cidr_list() returns; a range of addresses needs at most 62."""


def _parse_ipv4_integer_and_prefix_length(network: str) -> tuple[int, int]:
    """Parse a text such as ``10.0.0.0/8`` to an integer and a prefix length; raise ValueError if it is invalid."""
    address, slash, prefix = network.strip().partition("/")
    bits = int(prefix) if slash else _V4_BITS
    if not 0 <= bits <= _V4_BITS:
        raise ValueError(network)
    return int(ipaddress.IPv4Address(address)), bits


def _parse_ip_integer_and_prefix_length(network: str) -> tuple[int, int]:
    """Parse an IP address with an optional prefix to the 128-bit integer of its IPv6 form and a prefix length."""
    address, slash, prefix = network.strip().partition("/")
    if ":" not in address:
        value, bits = _parse_ipv4_integer_and_prefix_length(network)
        return _MAPPED | value, bits + _V4_BITS_IN_V6
    bits = int(prefix) if slash else _V6_BITS
    if not 0 <= bits <= _V6_BITS:
        raise ValueError(network)
    value = int(ipaddress.IPv6Address(address))
    if "." in address and value >> _V4_BITS in (0, 0xFFFF):
        # An IPv4 address in the notation of IPv6.
        return _MAPPED | value, bits + _V4_BITS_IN_V6 if bits <= _V4_BITS else bits
    return value, bits


def _mask_address(address: int, prefix_length: int, address_bits: int) -> int:
    return address >> (address_bits - prefix_length) << (address_bits - prefix_length)


def _parse_masked_ipv4_as_integer(network: str, prefix_length: int) -> int:
    value, bits = _parse_ipv4_integer_and_prefix_length(network)
    if not 0 <= prefix_length <= _V4_BITS:
        raise ValueError(prefix_length)
    return _mask_address(value, min(bits, prefix_length), _V4_BITS)


def _format_ipv6(address: int) -> str:
    digits = f"{address:032x}"  # the library writes the end of a mapped IPv4 address with dots
    return ":".join(digits[index : index + 4] for index in range(0, 32, 4))


def _normalize_to_masked_ipv6_text(network: str, prefix_length: int) -> str:
    value, bits = _parse_ip_integer_and_prefix_length(network)
    if not 0 <= prefix_length <= _V6_BITS:
        raise ValueError(prefix_length)
    return _format_ipv6(_mask_address(value, min(bits, prefix_length), _V6_BITS))


def _parse_masked_ipv4_integer_and_prefix_length(address: str, prefix_length: int | None) -> tuple[int, int]:
    value, bits = (int(address), _V4_BITS) if address.isdigit() else _parse_ipv4_integer_and_prefix_length(address)
    if prefix_length is not None:
        if not 0 <= prefix_length <= _V4_BITS:
            raise ValueError(prefix_length)
        bits = min(bits, prefix_length)
    return _mask_address(value, bits, _V4_BITS), bits


def _format_masked_ipv4(address: str, prefix_length: int | None) -> str:
    value, _ = _parse_masked_ipv4_integer_and_prefix_length(address, prefix_length)
    return str(ipaddress.IPv4Address(value))


def _format_masked_ipv4_with_prefix_length(address: str, prefix_length: int | None) -> str:
    value, bits = _parse_masked_ipv4_integer_and_prefix_length(address, prefix_length)
    return f"{ipaddress.IPv4Address(value)}/{bits}"


def _compare_masked_ip_addresses(first_address: str, second_address: str, prefix_length: int | None) -> int:
    (left, left_bits), (right, right_bits) = (
        _parse_ip_integer_and_prefix_length(first_address),
        _parse_ip_integer_and_prefix_length(second_address),
    )
    bits = min(left_bits, right_bits, _V6_BITS if prefix_length is None else prefix_length)
    if bits < 0:
        raise ValueError(prefix_length)
    left, right = _mask_address(left, bits, _V6_BITS), _mask_address(right, bits, _V6_BITS)
    return (left > right) - (left < right)


def _is_address_in_any_range(ranges: Sequence[str], address: str) -> bool:
    return any(_is_address_in_network_range(address, each) for each in ranges)


def _is_address_in_network_range(address: str, network: str) -> bool:
    try:
        return _compare_masked_ip_addresses(address, network, None) == 0
    except ValueError:
        return False


def _is_ipv4_address_in_any_range(address: str, ranges: Sequence[str]) -> bool:
    _parse_ipv4_integer_and_prefix_length(address)
    return _is_address_in_any_range(ranges, address)


def _is_ipv6_address_in_any_range(address: str, ranges: Sequence[str]) -> bool:
    _parse_ip_integer_and_prefix_length(address)
    return _is_address_in_any_range(ranges, address)


def _find_ipv4_addresses(text: str) -> list[str]:
    found = (match.group() for match in _ADDRESS.finditer(text))
    return [each for each in found if all(int(part) < 256 for part in each.split("."))]  # noqa: PLR2004


def _has_any_ipv4_address(text: str, addresses: Sequence[str]) -> bool:
    found = set(_find_ipv4_addresses(text))
    return any(each in found for each in addresses)


def _has_any_ipv4_prefix(text: str, prefixes: Sequence[str]) -> bool:
    found = _find_ipv4_addresses(text)
    return any(_has_address_prefix(each, prefix) for prefix in prefixes for each in found)


def _has_address_prefix(address: str, prefix: str) -> bool:
    parts = prefix.split(".")
    is_whole = len(parts) == 4 and parts[-1] != ""  # noqa: PLR2004
    return address == prefix if is_whole else prefix.endswith(".") and address.startswith(prefix)


def _list_cidr_ranges(first_address: str, last_address: str) -> list[str]:
    start, end = ipaddress.IPv4Address(first_address.strip()), ipaddress.IPv4Address(last_address.strip())
    return [str(each) for each in ipaddress.summarize_address_range(start, end)][:_MAX_RANGES]


CALLS = (
    ScalarCall("parse_ipv4_mask", _parse_masked_ipv4_as_integer, "string long", "long"),
    ScalarCall("parse_ipv6_mask", _normalize_to_masked_ipv6_text, "string long", "string"),
    ScalarCall("format_ipv4", _format_masked_ipv4, "any long?", "string", ""),
    ScalarCall("format_ipv4_mask", _format_masked_ipv4_with_prefix_length, "any long?", "string", ""),
    ScalarCall("ipv6_compare", _compare_masked_ip_addresses, "string string long?", "long"),
    ScalarCall(
        "ipv6_is_match", lambda x, y, p: _compare_masked_ip_addresses(x, y, p) == 0, "string string long?", "bool"
    ),
    ScalarCall("ipv6_is_in_range", lambda x, y: _compare_masked_ip_addresses(x, y, None) == 0, "string string", "bool"),
    ScalarCall("ipv6_is_in_any_range", _is_ipv6_address_in_any_range, "string *", "bool"),
    ScalarCall("ipv4_is_in_any_range", _is_ipv4_address_in_any_range, "string *", "bool"),
    ScalarCall("ipv4_netmask_suffix", lambda text: _parse_ipv4_integer_and_prefix_length(text)[1], "string", "long"),
    ScalarCall("has_ipv4", lambda text, ip: _has_any_ipv4_address(text, [ip]), "text string", "bool", missing=False),
    ScalarCall("has_ipv4_prefix", lambda text, ip: _has_any_ipv4_prefix(text, [ip]), "text string", "bool", False),
    ScalarCall("has_any_ipv4", _has_any_ipv4_address, "text *", "bool", missing=False),
    ScalarCall("has_any_ipv4_prefix", _has_any_ipv4_prefix, "text *", "bool", missing=False),
    ScalarCall("ipv4_range_to_cidr_list", _list_cidr_ranges, "string string", "dynamic"),
)

SUPPORTED: tuple[str, ...] = (
    *tuple(call.name for call in CALLS),
    "evaluate ipv4_lookup",
    "evaluate ipv6_lookup",
)

macros: tuple[str, ...] = ()
_UNMATCHED = "return_unmatched"
_VERSION_BITS = {4: 32, 6: 128}
_LEAST_ARGUMENTS = 3
_WITHOUT_EXTRA_KEYS = 4


def _encode_address_range_as_hex(network: str | None, ip_version: int | None) -> str | None:
    """Return the first and last address of a network as one text of 64 hexadecimal digits; None if invalid."""
    address, slash, prefix = (network or "").strip().partition("/")
    try:
        parsed = ipaddress.ip_address(address)
        if parsed.version == 4 and ip_version == 6:  # noqa: PLR2004  an IPv4 address in its mapped form
            parsed = ipaddress.IPv6Address(f"::ffff:{address}")
            prefix = str(int(prefix) + 96) if slash else prefix
        length = _VERSION_BITS[parsed.version]
        hidden = length - int(prefix) if slash else 0
    except ValueError:
        return None
    if parsed.version != ip_version or not 0 <= hidden <= length:
        return None
    first = int(parsed) >> hidden << hidden
    return f"{first:032x}{first | ((1 << hidden) - 1):032x}"


functions: tuple[PythonFunction, ...] = (
    *build_python_functions(CALLS),
    PythonFunction("kql_ip_range", _encode_address_range_as_hex, ("VARCHAR", "INTEGER"), "VARCHAR"),
)


@dataclasses.dataclass(frozen=True)
class IpLookup(UnorderedOutputOperator):
    """Plugin ``ipv4_lookup`` or ``ipv6_lookup``, which joins each row with the networks that contain its address.

    Attributes:
        version: version of the addresses, 4 or 6.
        lookup: query that returns the table of networks.
        source_key: column of the input with the address.
        lookup_key: column of the table with the network.
        extra_keys: columns of input and table whose values must also be equal.
        unmatched: True if rows without a network are part of the result.
    """

    version: int
    lookup: ir.Query
    source_key: str
    lookup_key: str
    extra_keys: tuple[str, ...]
    unmatched: bool

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that joins each row with the networks that contain its address."""
        known = find_columns_of_readable_tables()
        own = self._list_columns_of_lookup_table()
        for names, wanted in ((input_columns, self.source_key), (own, self.lookup_key)):
            check_column_exists(wanted, names)
        for name in self.extra_keys:
            check_column_exists(name, input_columns)
            check_column_exists(name, own)
        kind, p = "LEFT JOIN" if self.unmatched else "JOIN", choose_unused_prefix([*input_columns, *own])
        sides = (
            f"SELECT *, row_number() OVER () AS {p}n, "  # noqa: S608  quoted, rendered
            f"kql_ip_range({EXECUTION}, {quote_name(key)}, {self.version}) AS {p}i FROM {rows}"
            for key, rows in (
                (self.source_key, input_sql),
                (self.lookup_key, f"({translate.to_sql(self.lookup, known)})"),
            )
        )
        left, right = sides
        equal = "".join(f" AND l.{quote_name(name)} = r.{quote_name(name)}" for name in self.extra_keys)
        first, last = f"substring({{0}}.{p}i, 1, 32)", f"substring({{0}}.{p}i, 33)"
        overlap = f"{first.format('l')} <= {last.format('r')} AND {first.format('r')} <= {last.format('l')}"
        result = [f"l.{quote_name(name)}" for name in input_columns]
        result += [
            f"r.{quote_name(name)} AS {quote_name(shown)}"
            for name, shown in zip(
                self._list_added_columns(), self.infer_output_columns(input_columns)[len(input_columns) :], strict=True
            )
        ]
        joined = f"({left}) AS l {kind} ({right}) AS r ON {overlap}{equal}"
        return f"SELECT {', '.join(result)} FROM {joined} ORDER BY l.{p}n, r.{p}n"  # noqa: S608  quoted names

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the input, followed by the columns of the table without the extra keys."""
        names = list(input_columns)
        for name in self._list_added_columns():
            names.append(schema.disambiguate(name, names))
        return names

    def replace_expressions(self, substitute: ExpressionReplacer) -> "IpLookup":
        """Return a copy of the plugin with ``substitute`` applied to the expressions of the table's query."""
        return dataclasses.replace(self, lookup=replace_query_expressions(self.lookup, substitute))

    def _list_columns_of_lookup_table(self) -> list[str]:
        return schema.output_columns(self.lookup, find_columns_of_readable_tables())

    def _list_added_columns(self) -> list[str]:
        return [name for name in self._list_columns_of_lookup_table() if name not in self.extra_keys]


def _build_lookup_parser(ip_version: int) -> PluginParser:
    plugin = f"ipv{ip_version}_lookup"

    def parse_lookup(node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None) -> ir.Operator:
        position = get_line_and_column(node)
        if schema_clause is not None:
            raise unsupported_error(
                f"evaluate {plugin} with an output schema", "remove the schema after the colon", position
            )
        rest, unmatched = _split_off_unmatched_flag(arguments)
        if len(rest) < _LEAST_ARGUMENTS or (ip_version != 4 and len(rest) >= _WITHOUT_EXTRA_KEYS):  # noqa: PLR2004
            raise semantic_error(
                f"evaluate {plugin}() requires a table and two key columns", inner="SEM0219", position=position
            )
        table, *keys = rest
        columns = [reader.lower_named(each).expr for each in keys]
        if not all(isinstance(each, ir.ColumnRef) for each in columns):
            raise semantic_error(f"evaluate {plugin}(): a key must be a column", inner="SEM0219", position=position)
        query = reader.lower_query_node(reader.collapse(table))
        source_key, lookup_key, *extra = (each.name for each in columns)
        return IpLookup(ip_version, query, source_key, lookup_key, tuple(extra), unmatched)

    return parse_lookup


def _split_off_unmatched_flag(arguments: Sequence[ParseNode]) -> tuple[Sequence[ParseNode], bool]:
    """Return the arguments without the optional last flag ``return_unmatched``, and the value of this flag."""
    last = reader.lower_named(arguments[-1]).expr if len(arguments) > _LEAST_ARGUMENTS else None
    if isinstance(last, ir.Literal) and last.kind == "bool":
        return arguments[:-1], bool(last.value)
    if len(arguments) > _LEAST_ARGUMENTS and find_argument_name(arguments[-1]) == _UNMATCHED:
        raise semantic_error(
            f"evaluate ipv4_lookup() or ipv6_lookup(): the argument {_UNMATCHED} must be a literal of type bool",
            inner="SEM0219",
        )
    return arguments, False


def install_into_translator() -> None:
    """Add IP address functions and the plugins ``ipv4_lookup`` and ``ipv6_lookup`` to the KQL translator library."""
    install_scalar_calls(CALLS)
    for version in _VERSION_BITS:
        add_plugin(f"ipv{version}_lookup", _build_lookup_parser(version))
