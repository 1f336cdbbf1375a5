"""Plugins ``ipv4_lookup`` and ``ipv6_lookup``: join rows with a table of networks by an address.

The addresses of a network are a range of integers. Two ranges with a common address match, as the ranges of two
networks are disjoint or one contains the other.
"""

import dataclasses
import ipaddress
from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, schema, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.names import find_argument_name
from emulators.kusto.extensions.pipeline import Substitute, get_known_tables, replace_in_query
from emulators.kusto.extensions.plugins import Plugin, add_plugin, check_column
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import quote_name
from emulators.kusto.extensions.tree import get_source_position
from emulators.kusto.extensions.window_plan import find_free_prefix
from emulators.kusto.python_functions import PythonFunction

SUPPORTED: tuple[str, ...] = ("evaluate ipv4_lookup", "evaluate ipv6_lookup")

macros: tuple[str, ...] = ()
_UNMATCHED = "return_unmatched"
_BITS = {4: 32, 6: 128}
_LEAST = 3
_WITHOUT_EXTRA_KEYS = 4


def _find_range(text: str | None, version: int | None) -> str | None:
    """Return the first and last address of a network as one text of 64 hexadecimal digits; None if it is invalid."""
    address, slash, prefix = (text or "").strip().partition("/")
    try:
        parsed = ipaddress.ip_address(address)
        if parsed.version == 4 and version == 6:  # noqa: PLR2004  an IPv4 address in its mapped form
            parsed = ipaddress.IPv6Address(f"::ffff:{address}")
            prefix = str(int(prefix) + 96) if slash else prefix
        length = _BITS[parsed.version]
        hidden = length - int(prefix) if slash else 0
    except ValueError:
        return None
    if parsed.version != version or not 0 <= hidden <= length:
        return None
    first = int(parsed) >> hidden << hidden
    return f"{first:032x}{first | ((1 << hidden) - 1):032x}"


functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_ip_range", _find_range, ("VARCHAR", "INTEGER"), "VARCHAR"),
)


@dataclasses.dataclass(frozen=True)
class IpLookup(UnorderedOutputOperator):
    """Plugin ``ipv4_lookup`` or ``ipv6_lookup``.

    Attributes:
        version: version of the addresses, 4 or 6.
        lookup: query that returns the table of networks.
        source_key: column of the input with the address.
        lookup_key: column of the table with the network.
        extra_keys: columns of both that must be equal.
        unmatched: True if rows without a network are part of the result.
    """

    version: int
    lookup: ir.Query
    source_key: str
    lookup_key: str
    extra_keys: tuple[str, ...]
    unmatched: bool

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the plugin as SQL that joins each row with the networks of its address."""
        known = get_known_tables()
        own = self._find_lookup_columns()
        for names, wanted in ((cols, self.source_key), (own, self.lookup_key)):
            check_column(wanted, names)
        for name in self.extra_keys:
            check_column(name, cols)
            check_column(name, own)
        kind, p = "LEFT JOIN" if self.unmatched else "JOIN", find_free_prefix([*cols, *own])
        sides = (
            f"SELECT *, row_number() OVER () AS {p}n, kql_ip_range({quote_name(key)}, {self.version}) AS {p}i "  # noqa: S608
            f"FROM {rows}"
            for key, rows in ((self.source_key, prev), (self.lookup_key, f"({translate.to_sql(self.lookup, known)})"))
        )
        left, right = sides
        equal = "".join(f" AND l.{quote_name(name)} = r.{quote_name(name)}" for name in self.extra_keys)
        first, last = f"substring({{0}}.{p}i, 1, 32)", f"substring({{0}}.{p}i, 33)"
        overlap = f"{first.format('l')} <= {last.format('r')} AND {first.format('r')} <= {last.format('l')}"
        result = [f"l.{quote_name(name)}" for name in cols]
        result += [
            f"r.{quote_name(name)} AS {quote_name(shown)}"
            for name, shown in zip(self._find_added_columns(), self.infer_columns(cols)[len(cols) :], strict=True)
        ]
        joined = f"({left}) AS l {kind} ({right}) AS r ON {overlap}{equal}"
        return f"SELECT {', '.join(result)} FROM {joined} ORDER BY l.{p}n, r.{p}n"  # noqa: S608  quoted names

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the input, followed by those of the table without the extra keys."""
        names = list(cols)
        for name in self._find_added_columns():
            names.append(schema.disambiguate(name, names))
        return names

    def replace_expressions(self, substitute: Substitute) -> "IpLookup":
        """Return a copy in which ``substitute`` has replaced the expressions of the query for the table."""
        return dataclasses.replace(self, lookup=replace_in_query(self.lookup, substitute))

    def _find_lookup_columns(self) -> list[str]:
        return schema.output_columns(self.lookup, get_known_tables())

    def _find_added_columns(self) -> list[str]:
        return [name for name in self._find_lookup_columns() if name not in self.extra_keys]


def _build_parser(version: int) -> Plugin:
    plugin = f"ipv{version}_lookup"

    def parse_lookup(node: Any, arguments: Sequence[Any], clause: Any) -> ir.Operator:
        position = get_source_position(node)
        if clause is not None:
            raise unsupported_error(f"evaluate {plugin} with an output schema", position=position)
        rest, unmatched = _split_unmatched(arguments)
        if len(rest) < _LEAST or (version != 4 and len(rest) >= _WITHOUT_EXTRA_KEYS):  # noqa: PLR2004
            raise semantic_error(
                f"evaluate {plugin}() has a wrong number of arguments", inner="SEM0219", position=position
            )
        table, *keys = rest
        columns = [reader.lower_named(each).expr for each in keys]
        if not all(isinstance(each, ir.ColumnRef) for each in columns):
            raise semantic_error(f"evaluate {plugin}(): a key must be a column", inner="SEM0219", position=position)
        query = reader.lower_query_node(reader.collapse(table))
        source_key, lookup_key, *extra = (each.name for each in columns)
        return IpLookup(version, query, source_key, lookup_key, tuple(extra), unmatched)

    return parse_lookup


def _split_unmatched(arguments: Sequence[Any]) -> tuple[Sequence[Any], bool]:
    """Split off the last argument if it is the flag ``return_unmatched``; return the others and the flag's value."""
    last = reader.lower_named(arguments[-1]).expr if len(arguments) > _LEAST else None
    if isinstance(last, ir.Literal) and last.kind == "bool":
        return arguments[:-1], bool(last.value)
    if len(arguments) > _LEAST and find_argument_name(arguments[-1]) == _UNMATCHED:
        raise semantic_error(f"the argument {_UNMATCHED} must be a literal of type bool", inner="SEM0219")
    return arguments, False


def install() -> None:
    """Add the plugins to the operator ``evaluate``."""
    for version in _BITS:
        add_plugin(f"ipv{version}_lookup", _build_parser(version))
