"""``evaluate bag_unpack``: a column for each property of a column's bags."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir

from emulators.kusto.discovery import Discovering, name_of
from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.names import argument_name
from emulators.kusto.extensions.plugins import Schema, add_plugin, check_column, output_schema, quoted_name, text_of
from emulators.kusto.extensions.serialized import Unserializing
from emulators.kusto.extensions.sql import render
from emulators.kusto.extensions.tree import position

SUPPORTED: tuple[str, ...] = ("evaluate bag_unpack (prefix, columnsConflict, ignoredProperties, output schema)",)

macros: tuple[str, ...] = ()
_CONFLICTS = ("error", "replace_source", "keep_source")
_JSON_TYPES = {
    "VARCHAR": "string",
    "BIGINT": "long",
    "UBIGINT": "long",
    "HUGEINT": "long",
    "DOUBLE": "real",
    "BOOLEAN": "bool",
}


def install() -> None:
    """Teach the translator the plugin."""
    add_plugin("bag_unpack", _bag_unpack)


@dataclasses.dataclass(frozen=True)
class Properties(Unserializing):
    """The probe of ``bag_unpack``: the properties of a column's bags and the JSON types of their values, by name."""

    column: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Return a row for each property; null values tell no type."""
        check_column(self.column, cols)
        column = quoted_name(self.column)
        bag = f"from_json(CASE WHEN json_type({column}) = 'OBJECT' THEN {column} END, "
        return (
            f"SELECT e.key AS name, list_sort(list(DISTINCT json_type(e.value)) FILTER "  # noqa: S608  a quoted name
            f"(WHERE json_type(e.value) <> 'NULL')) AS kinds FROM (SELECT unnest(map_entries({bag}"
            f"'\"MAP(VARCHAR,JSON)\"'))) AS e FROM {prev}) GROUP BY ALL ORDER BY name"
        )

    def columns(self, cols: list[str]) -> list[str]:
        """Return name and types."""
        del cols
        return ["name", "kinds"]


@dataclasses.dataclass(frozen=True)
class BagUnpack(Unserializing, Discovering):
    """``bag_unpack(column, prefix, conflict, ignored)``: a column for each property of a column's bags."""

    place: int
    column: str
    prefix: str = ""
    conflict: str = "error"
    ignored: tuple[str, ...] = ()
    schema: Schema | None = None
    star: bool = False

    def probe(self) -> ir.Operator:
        """Return the query for the properties."""
        return Properties(self.column)

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the rows with their properties as columns."""
        check_column(self.column, cols)
        properties = self._properties()
        names = self.columns(cols)
        chosen = [
            f"{self._value(name, properties[name])} AS {quoted_name(name)}"
            if name in properties and (self.conflict != "keep_source" or name not in self._sources(cols))
            else quoted_name(name)
            for name in names
        ]
        return f"SELECT {', '.join(chosen)} FROM {prev}"  # noqa: S608  quoted names, rendered expressions

    def columns(self, cols: list[str]) -> list[str]:
        """Return the input's columns but for the bag, and one for each property."""
        sources, properties = self._sources(cols), self._properties()
        if self.schema is not None and not self.star:
            return [name for name, _ in self.schema]
        both = [name for name in properties if name in sources]
        if both and self.conflict == "error" and self.schema is None:
            raise semantic_error(f"evaluate bag_unpack(): the column '{both[0][:100]}' is there already")
        if self.conflict == "replace_source":
            sources = [name for name in sources if name not in both]
        names = [*sources, *(name for name in properties if name not in sources)]
        if not names:
            raise unsupported("a result without columns")
        return names

    def _sources(self, cols: list[str]) -> list[str]:
        return [name for name in cols if name != self.column]

    def _properties(self) -> dict[str, str]:
        """Return the Kusto type of each property's column."""
        if self.schema is not None:
            return dict(self.schema)
        found = {name_of(row[0]): row[1] for row in self.found if row[0] not in self.ignored}
        return {f"{self.prefix}{name}": _kind(kinds) for name, kinds in found.items()}

    def _value(self, name: str, kind: str) -> str:
        path = ir.PathAccess(ir.ColumnRef(self.column), (ir.PathStep(name[len(self.prefix) :]),))
        if kind == "dynamic":
            return render(path)
        function = {"string": "tostring", "bool": "tobool", "int": "toint", "long": "tolong", "real": "todouble"}
        function |= {"datetime": "todatetime", "timespan": "totimespan", "guid": "toguid"}
        if kind not in function:
            raise unsupported(f"bag_unpack to {kind[:50]}")
        return render(ir.FunctionCall(function[kind], (path,)))


def _kind(kinds: Sequence[str] | None) -> str:
    """Return the type that all values of a property have: Kusto's, and dynamic where they differ."""
    types = {_JSON_TYPES.get(kind, "dynamic") for kind in kinds or ()}
    return types.pop() if len(types) == 1 else "dynamic"


def _bag_unpack(node: Any, arguments: Sequence[Any], clause: Any) -> ir.Operator:
    names = ("column", "OutputColumnPrefix", "columnsConflict", "ignoredProperties")
    given: dict[str, ir.Expr] = {}
    for index, argument in enumerate(arguments):
        name = argument_name(argument) or names[min(index, len(names) - 1)]
        if name not in names or name in given:
            raise semantic_error(f"evaluate bag_unpack(): there is no argument '{name[:100]}'", position=position(node))
        given[name] = reader.lower_named(argument).expr
    column = given.get("column")
    if not isinstance(column, ir.ColumnRef):
        raise semantic_error("evaluate bag_unpack(): the first argument must be a column", position=position(node))
    conflict = text_of(given.get("columnsConflict"), "error")
    if conflict not in _CONFLICTS:
        raise semantic_error(f"evaluate bag_unpack(): columnsConflict is one of {', '.join(_CONFLICTS)}")
    ignored = json.loads(text_of(given.get("ignoredProperties"), "[]") or "[]")
    schema, star = output_schema(clause)
    prefix = text_of(given.get("OutputColumnPrefix"), "")
    return BagUnpack(node.start.start, column.name, prefix, conflict, tuple(map(str, ignored)), schema, star)
