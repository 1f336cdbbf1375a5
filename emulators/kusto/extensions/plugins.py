"""Query operator ``evaluate``, which calls a plugin, and the plugins ``bag_unpack`` and ``dcount_intersect``.

The plugin ``dcount_intersect`` counts the values that several sets of hashes (results of ``hll``) share.
"""

import dataclasses
import itertools
import json
from collections.abc import Callable, Sequence

import orjson
from duckdb_kql import ir

from emulators.kusto.discovery import (
    PLACEHOLDER_COLUMN,
    DataDependentOperator,
    column_name_from_value,
    map_texts_to_column_names,
)
from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.digests import HashSet, estimate_distinct_count
from emulators.kusto.extensions.grammar import NOTHING
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.names import find_argument_name
from emulators.kusto.extensions.pipeline import add_operator
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.several_results import parse_preview
from emulators.kusto.extensions.sql import SQL_TYPES, KustoType, Sql, quote_name, render_expression
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_line_and_column, list_nodes_by_rule
from emulators.kusto.python_functions import FunctionFailure, PythonFunction
from emulators.kusto.stop_events import EXECUTION

SUPPORTED: tuple[str, ...] = (
    "evaluate bag_unpack (prefix, columnsConflict, ignoredProperties, output schema)",
    "evaluate dcount_intersect (exact for at most 1,024 values)",
)


type Schema = tuple[tuple[str, str], ...]
"""Name and Kusto type of each column."""
type PluginParser = Callable[[ParseNode, Sequence[ParseNode], ParseNode | None], ir.Operator | list[ir.Operator]]
"""Function that converts a plugin call to query operators.

Its arguments are the parse tree nodes of the operator, of the plugin's arguments, and of the output schema.
"""

_PLUGINS: dict[str, PluginParser] = {}


def add_plugin(plugin_name: str, parse_plugin: PluginParser) -> None:
    """Register a function that converts the parse tree of ``evaluate name(...)`` to query operators."""
    _PLUGINS[plugin_name] = parse_plugin


def _install_evaluate() -> None:
    """Add the operator ``evaluate`` to the KQL translator library."""
    add_operator("EvaluateOperator", _parse_evaluate)
    add_plugin("preview", parse_preview)


def _parse_evaluate(node: ParseNode) -> ir.Operator | list[ir.Operator]:
    calls = list_nodes_by_rule(node, "NamedFunctionCallExpression")
    name = get_child_rules(calls[0])[0].getText() if calls else ""
    plugin = _PLUGINS.get(name)
    if plugin is None:
        raise unsupported_error(f"evaluate {name[:100]}", position=get_line_and_column(node))
    clauses = list_nodes_by_rule(node, "EvaluateOperatorSchemaClause")
    return plugin(node, get_child_rules(calls[0])[1:], clauses[0] if clauses else None)


def read_output_schema_and_wildcard(schema_clause: ParseNode | None) -> tuple[Schema | None, bool]:
    """Parse an output schema such as ``: (*, a:long)``.

    Return the declared columns (None without a schema), and whether the schema also includes the input columns (``*``).
    """
    if schema_clause is None:
        return None, False
    columns, star = [], False
    for declaration in list_nodes_by_rule(schema_clause, "RowSchemaColumnDeclaration"):
        name, kind = get_child_rules(declaration)
        if name.getText() == NOTHING:
            star = True
            continue
        if kind.getText() not in SQL_TYPES:
            raise unsupported_error(
                f"an output schema with the type {kind.getText()[:50]}", position=get_line_and_column(kind)
            )
        columns.append((reader.find_names(name)[0], kind.getText()))
    return tuple(columns), star


def read_text_argument(expr: ir.Expr | None, default_text: str) -> str:
    """Return the text of an optional argument of ``bag_unpack``; ``default_text`` if the argument is missing.

    Raises:
        QueryError: the argument is not a literal.
    """
    if expr is None:
        return default_text
    if not isinstance(expr, ir.Literal) or expr.value is None:
        raise unsupported_error(
            "evaluate bag_unpack with an option that is not a literal",
            "write each option, such as columnsConflict, as a literal",
        )
    return str(expr.value)


def check_column_exists(column_name: str, input_columns: Sequence[str]) -> None:
    """Check that ``column_name`` is one of the input columns of a query operator.

    Raises:
        QueryError: the column does not exist.
    """
    if column_name not in input_columns:
        raise semantic_error(f"Failed to resolve column named '{column_name[:200]}'")


_CONFLICTS = ("error", "replace_source", "keep_source")
_JSON_TYPES = {
    "VARCHAR": "string",
    "BIGINT": "long",
    "UBIGINT": "long",
    "HUGEINT": "long",
    "DOUBLE": "real",
    "BOOLEAN": "bool",
}


def _install_bag_unpack() -> None:
    """Add the plugin ``bag_unpack`` to the operator ``evaluate``."""
    add_plugin("bag_unpack", _parse_bag_unpack)


@dataclasses.dataclass(frozen=True)
class BagPropertiesDiscovery(UnorderedOutputOperator):
    """Query operator that lists the names and JSON types of the properties of the JSON objects in a column.

    A separate query with this operator runs before the query that contains ``bag_unpack``, to find its output columns.
    """

    column: str

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields each property name with the JSON types of its non-null values."""
        check_column_exists(self.column, input_columns)
        column = quote_name(self.column)
        bag = f"from_json(CASE WHEN json_type({column}) = 'OBJECT' THEN {column} END, "
        return (
            f"SELECT e.key AS name, list_sort(list(DISTINCT json_type(e.value)) FILTER "  # noqa: S608  a quoted name
            f"(WHERE json_type(e.value) <> 'NULL')) AS kinds FROM (SELECT unnest(map_entries({bag}"
            f"'\"MAP(VARCHAR,JSON)\"'))) AS e FROM {input_sql}) GROUP BY ALL ORDER BY name"
        )

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the two output columns: property name and JSON types."""
        del input_columns
        return ["name", "kinds"]


@dataclasses.dataclass(frozen=True)
class BagUnpack(UnorderedOutputOperator, DataDependentOperator):
    """Plugin ``bag_unpack``, which converts each property of the JSON objects in a column to a separate column.

    Attributes:
        offset: position of the operator in the query text.
        column: name of the column with the JSON objects.
        prefix: text before the name of each property in the names of the new columns.
        conflict: effect of a new column with the name of an input column: error, replace_source or keep_source.
        ignored: names of the properties that do not become columns.
        schema: name and Kusto type of each declared output column; None if the query states no output schema.
        star: True if the output schema also includes the input columns.
    """

    offset: int
    column: str
    prefix: str = ""
    conflict: str = "error"
    ignored: tuple[str, ...] = ()
    schema: Schema | None = None
    star: bool = False

    def build_column_discovery_operator(self) -> ir.Operator:
        """Return the query operator that lists the names and JSON types of the properties to unpack.

        The query with this operator runs before the query with ``bag_unpack``.
        """
        return BagPropertiesDiscovery(self.column)

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields the input rows with the properties as columns."""
        check_column_exists(self.column, input_columns)
        properties = self._map_columns_to_property_and_type(input_columns)
        names = self.infer_output_columns(input_columns)
        if names == [PLACEHOLDER_COLUMN] and not properties:
            return f"SELECT '' AS {quote_name(PLACEHOLDER_COLUMN)} FROM {input_sql}"  # noqa: S608  a quoted name
        chosen = [
            f"{self._render_property_value(*properties[name])} AS {quote_name(name)}"
            if name in properties
            and (self.conflict != "keep_source" or name not in self._list_columns_except_unpacked_one(input_columns))
            else quote_name(name)
            for name in names
        ]
        return f"SELECT {', '.join(chosen)} FROM {input_sql}"  # noqa: S608  quoted names, rendered expressions

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the input's columns without the unpacked column, and one column for each property of its JSON objects.

        The properties are known from a separate query that ran before (see `BagPropertiesDiscovery`). If the query
        declares an output schema, return the columns of the schema instead; the input's columns are then included only
        if the schema contains a star.
        """
        sources, properties = (
            self._list_columns_except_unpacked_one(input_columns),
            self._map_columns_to_property_and_type(input_columns),
        )
        if self.schema is not None and not self.star:
            return [name for name, _ in self.schema]
        both = [name for name in properties if name in sources]
        if both and self.conflict == "error" and self.schema is None:
            raise semantic_error(f"evaluate bag_unpack(): the column '{both[0][:100]}' already exists")
        if self.conflict == "replace_source":
            sources = [name for name in sources if name not in both]
        return [*sources, *(name for name in properties if name not in sources)] or [PLACEHOLDER_COLUMN]

    def _list_columns_except_unpacked_one(self, input_columns: list[str]) -> list[str]:
        return [name for name in input_columns if name != self.column]

    def _map_columns_to_property_and_type(self, input_columns: list[str]) -> dict[str, tuple[str, KustoType]]:
        """Return the source property and the Kusto type of each new column, by column name."""
        if self.schema is not None:
            return {name: (name[len(self.prefix) :], kind) for name, kind in self.schema}
        found = {column_name_from_value(row[0]): row[1] for row in self.discovery_rows if row[0] not in self.ignored}
        prefixed = {f"{self.prefix}{name}": name for name in found}
        names = map_texts_to_column_names(prefixed, self._list_columns_except_unpacked_one(input_columns))
        return {names[text]: (name, _infer_property_type(found[name])) for text, name in prefixed.items()}

    def _render_property_value(self, property_name: str, kusto_type: KustoType) -> Sql:
        path = ir.PathAccess(ir.ColumnRef(self.column), (ir.PathStep(property_name),))
        if kusto_type == "dynamic":
            return render_expression(path)
        function = {"string": "tostring", "bool": "tobool", "int": "toint", "long": "tolong", "real": "todouble"}
        function |= {"datetime": "todatetime", "timespan": "totimespan", "guid": "toguid"}
        if kusto_type not in function:
            raise unsupported_error(f"bag_unpack to a column of type {kusto_type[:50]}")
        return render_expression(ir.FunctionCall(function[kusto_type], (path,)))


def _infer_property_type(json_types: Sequence[str] | None) -> KustoType:
    """Return the Kusto type of a property whose values have these JSON types; dynamic if they differ."""
    types = {_JSON_TYPES.get(kind, "dynamic") for kind in json_types or ()}
    return types.pop() if len(types) == 1 else "dynamic"


def _parse_bag_unpack(node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None) -> ir.Operator:
    names = ("column", "OutputColumnPrefix", "columnsConflict", "ignoredProperties")
    values: dict[str, ir.Expr] = {}
    for index, argument in enumerate(arguments):
        name = find_argument_name(argument) or names[min(index, len(names) - 1)]
        if name not in names or name in values:
            raise semantic_error(
                f"evaluate bag_unpack(): unknown or repeated argument '{name[:100]}'",
                position=get_line_and_column(node),
            )
        values[name] = reader.lower_named(argument).expr
    column = values.get("column")
    if not isinstance(column, ir.ColumnRef):
        raise semantic_error(
            "evaluate bag_unpack(): the first argument must be a column", position=get_line_and_column(node)
        )
    conflict = read_text_argument(values.get("columnsConflict"), "error")
    if conflict not in _CONFLICTS:
        raise semantic_error(f"evaluate bag_unpack(): columnsConflict must be one of {', '.join(_CONFLICTS)}")
    ignored = _parse_ignored_properties(read_text_argument(values.get("ignoredProperties"), "") or "[]")
    schema, star = read_output_schema_and_wildcard(schema_clause)
    prefix = read_text_argument(values.get("OutputColumnPrefix"), "")
    return BagUnpack(node.start.start, column.name, prefix, conflict, ignored, schema, star)


def _parse_ignored_properties(json_text: str) -> tuple[str, ...]:
    try:
        names = json.loads(json_text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise semantic_error("evaluate bag_unpack(): ignoredProperties must be an array of strings")
    return tuple(names)


macros: tuple[str, ...] = ()
_LEAST_SETS, _MOST_SETS = 2, 16
_MOST_ESTIMATED_SETS = 6
"""Maximum number of sets whose intersections are estimated, as the effort doubles with each set."""


def _count_values_common_to_first_n_sets(hash_sets: list[str | None] | None) -> list[int] | None:
    """Return, for n from 1 to the number of sets, how many values the first n sets share; None if a set is missing."""
    if hash_sets is None or any(each is None for each in hash_sets):
        return None
    found = [orjson.loads(each) for each in hash_sets if each is not None]
    if not any(each[2] for each in found):
        hashes: list[set[str]] = [set(each[1]) for each in found]
        return [len(set.intersection(*hashes[: count + 1])) for count in range(len(hashes))]
    if len(found) > _MOST_ESTIMATED_SETS:
        raise FunctionFailure(
            "EMB0001",
            f"dcount_intersect() of more than {_MOST_ESTIMATED_SETS} large sets is not supported by the embedded query "
            "engine",
        )
    texts = [each for each in hash_sets if each is not None]
    return [_estimate_count_of_shared_values(texts[: count + 1]) for count in range(len(texts))]


def _merge_and_parse_hash_sets(hash_sets: Sequence[str]) -> HashSet:
    from emulators.kusto.series.sketches import merge_hash_sets  # noqa: PLC0415  translator processes load no NumPy

    merged = merge_hash_sets(hash_sets)
    assert merged is not None  # noqa: S101  the caller has read the sets
    return orjson.loads(merged)


def _estimate_count_of_shared_values(hash_sets: Sequence[str]) -> int:
    """Estimate the number of values that all sets share, by the inclusion-exclusion principle."""
    total = 0
    for size in range(1, len(hash_sets) + 1):
        for chosen in itertools.combinations(hash_sets, size):
            total += (-1) ** (size + 1) * estimate_distinct_count(_merge_and_parse_hash_sets(chosen))
    return max(0, total)


functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_intersections", _count_values_common_to_first_n_sets, ("VARCHAR[]",), "BIGINT[]"),
)


@dataclasses.dataclass(frozen=True)
class DistinctIntersections(UnorderedOutputOperator):
    """Plugin ``dcount_intersect``, whose n-th new column contains the number of values that the first n sets share.

    ``sets`` are the names of the columns that contain the sets.
    """

    sets: tuple[str, ...]

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that adds, for each set, the number of values that it and all earlier sets share."""
        for name in self.sets:
            check_column_exists(name, input_columns)
        listed = ", ".join(f"CAST({quote_name(name)} AS VARCHAR)" for name in self.sets)
        counts = [
            f"kql_intersections({EXECUTION}, [{listed}])[{index}] AS {quote_name(name)}"
            for index, name in enumerate(self.infer_output_columns(input_columns)[len(input_columns) :], start=1)
        ]
        return f"SELECT *, {', '.join(counts)} FROM {input_sql}"  # noqa: S608  quoted names

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the input and, for each set, the name of its new column: ``s0``, ``s1`` and so on."""
        return [*input_columns, *(f"s{index}" for index in range(len(self.sets)))]


def _parse_dcount_intersect(
    node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None
) -> ir.Operator:
    position = get_line_and_column(node)
    if schema_clause is not None:
        raise unsupported_error(
            "evaluate dcount_intersect with an output schema", "remove the schema after the colon", position
        )
    lowered = [reader.lower_expr(each) for each in arguments]
    if not _LEAST_SETS <= len(lowered) <= _MOST_SETS or not all(isinstance(each, ir.ColumnRef) for each in lowered):
        fault = f"evaluate dcount_intersect() requires {_LEAST_SETS} to {_MOST_SETS} columns"
        raise semantic_error(fault, inner="SEM0219", position=position)
    return DistinctIntersections(tuple(each.name for each in lowered))


def install_into_translator() -> None:
    """Add the operator ``evaluate`` and the plugins of this module to the KQL translator library."""
    _install_evaluate()
    _install_bag_unpack()
    add_plugin("dcount_intersect", _parse_dcount_intersect)
