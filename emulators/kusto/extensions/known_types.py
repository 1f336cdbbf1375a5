"""Inference of expression types during translation, so that the generated SQL needs fewer type tests.

The translator library knows the names of columns but not their types. Where a name can refer to a dynamic value, the
SQL of the library tests the type of each value. A column needs no such test if it has the same type in all tables and
if the query assigns no other value to its name. Without these tests the SQL is half as long, which saves most of the
time of a small query.

In Kusto ``==`` is false for a null. In SQL the comparison is null, and the library corrects this result. A ``where``
removes the row in both cases, so its outermost comparisons need no correction. Without the correction, DuckDB can skip
row groups by their minimum and maximum.
"""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql._state import State
from duckdb_kql.errors import KqlError
from duckdb_kql.translate import naming

from emulators.kusto.extensions.library import replace_attribute
from emulators.kusto.extensions.make_series import MakeSeries
from emulators.kusto.extensions.serialized import Serialize
from emulators.kusto.extensions.sql import SQL_TYPES, DuckDbType, KustoType, Sql
from emulators.kusto.extensions.tabular import DistinctRows, SelectColumns, TakeRows
from emulators.kusto.extensions.tree import IrNode

FINITE_OR_INFINITE = "DOUBLE WITHOUT NAN"
"""Type name for DOUBLE columns without NaN; simpler SQL can sort and compare their values."""
_NONE: Mapping[str, str] = {}
_NO_STAGES: Mapping[int, Mapping[str, str]] = {}
_STAGES: State[Mapping[int, Mapping[str, str]]] = State("emulators.kusto.stages", lambda: _NO_STAGES)
_TYPES: State[Mapping[str, str]] = State("emulators.kusto.types", lambda: _NONE)
_KINDS = {
    "VARCHAR": "string", "JSON": "dynamic", "BOOLEAN": "bool", "UUID": "guid", "TIMESTAMP": "datetime",
    "INTERVAL": "timespan", "DOUBLE": "real", "FLOAT": "real", "BIGINT": "long", "INTEGER": "int", "HUGEINT": "long",
    "SMALLINT": "int", "TINYINT": "int", FINITE_OR_INFINITE: "real",
}  # fmt: skip
_RESULTS = {
    "string": ("tostring", "strcat", "strcat_delim", "strcat_array", "tolower", "toupper", "substring",
               "replace_string", "replace_regex", "trim", "trim_start", "trim_end", "format_datetime",
               "format_timespan", "strrep", "reverse", "gettype"),
    "long": ("tolong", "strlen", "array_length", "countof", "datetime_diff", "row_number", "hash"),
    "int": ("toint",),
    "real": ("toreal", "todouble", "sqrt", "log", "log10", "exp"),
    "datetime": ("now", "ago", "todatetime", "startofday", "startofhour", "datetime_add", "make_datetime"),
    "timespan": ("totimespan", "make_timespan"),
    "dynamic": ("parse_json", "todynamic", "pack_array", "bag_pack", "pack", "pack_dictionary", "bag_merge",
                "bag_keys", "split", "array_concat", "array_slice", "extract_all"),
}  # fmt: skip
_RESULT_OF = {name: kind for kind, names in _RESULTS.items() for name in names}
_TEXT_FUNCTIONS = frozenset({"strcat", "strcat_delim", "tostring"})
"""Functions whose SQL always has the type VARCHAR."""
_WHOLE_ARITHMETIC = frozenset({"+", "-", "*", "%"})
"""Operators whose result is a whole number if both operands are whole numbers."""
_ALIASES = {"double": "real", "boolean": "bool", "date": "datetime", "time": "timespan"}
_READING = (ir.ColumnRef, ir.Literal, ir.Parameter, ir.FunctionCall, ir.BinaryOp, ir.UnaryOp, ir.JoinKey, ir.LetRef,
            ir.PathStep, ir.TableRef, ir.InList, ir.HasList)  # fmt: skip
"""Types of query nodes whose text fields are not names of new columns."""
_KNOWN_OPERATORS = (ir.Where, ir.Project, ir.Extend, ir.Take, ir.Sort, ir.Top, ir.Count, ir.Distinct, ir.Join,
                    ir.Lookup, ir.Union, ir.MvExpand, ir.Parse, ir.ProjectAway, ir.ProjectRename, ir.Summarize,
                    MakeSeries, SelectColumns, TakeRows, DistinctRows, Serialize)  # fmt: skip
_INPUT_READING = (ir.Where, ir.Extend, ir.Project, ir.Summarize, ir.Distinct, ir.Sort, ir.Top, ir.Parse, ir.MvExpand)
"""Operators whose expressions read the columns of the input only, not the columns that the operator assigns."""
_KNOWN_SOURCES = (ir.TableRef, ir.DataTable, ir.PrintSource, ir.RangeSource)


def _install_known_types() -> None:
    """Make the translator library use the types that `infer_type` infers, so that the SQL needs fewer type tests."""
    replace_attribute(translate, "_may_be_dynamic", _patch_may_be_dynamic_for_known_types)
    replace_attribute(translate, "render_kql_tostring", _patch_tostring_for_known_types)
    # The result of arithmetic on int is long.
    replace_attribute(
        translate, "_is_int_expr", lambda default: lambda node: default(node) or infer_type(node) == "int"
    )


@contextlib.contextmanager
def bind_known_types(query: ir.Query, type_by_column: Mapping[str, DuckDbType]) -> Iterator[None]:
    """Context manager: provide the types of columns to `infer_type` during the translation of a query.

    Args:
        query: the query in the intermediate representation of the translator library.
        type_by_column: DuckDB type by column name, for columns that have the same type in all tables.
    """
    assigned = _collect_assigned_column_names(query)
    unknown = set(type_by_column) if assigned is None else assigned
    if _can_rename_repeated_columns(query):
        unknown |= {name for name in type_by_column if name[-1:].isdigit()}
    with (
        _TYPES.bound({name: kind for name, kind in type_by_column.items() if name not in unknown}),
        _STAGES.bound(_map_operator_ids_to_input_types(query, type_by_column)),
    ):
        yield


def _map_operator_ids_to_input_types(
    query: ir.Query, type_by_column: Mapping[str, DuckDbType]
) -> Mapping[int, Mapping[str, DuckDbType]]:
    """Return the types of the input columns of each operator in a pipeline, by Python ``id()`` of the operator.

    A column has its type from the table until an operator assigns a value to its name. A column that ``extend``
    computes with a function such as ``strcat`` has the type string.
    """
    stages: dict[int, Mapping[str, str]] = {}
    known = type_by_column
    if isinstance(query.source, ir.DataTable):
        known = {name: SQL_TYPES[kind] for name, kind in query.source.columns if kind in SQL_TYPES}
    elif not isinstance(query.source, ir.TableRef) or query.source.name in {name for name, _ in query.lets}:
        return stages
    for op in query.operators:
        assigned = _collect_assigned_column_names(op)
        if assigned is None:
            # The expressions of such an operator read only the columns of its input.
            if getattr(op, "reads_input_only", False):
                stages[id(op)] = known
            break
        if _can_rename_repeated_columns(op):
            assigned |= {name for name in known if name[-1:].isdigit()}
        after = {name: kind for name, kind in known.items() if name not in assigned}
        stages[id(op)] = known if isinstance(op, _INPUT_READING) else after
        known = {**after, **_map_computed_string_columns_to_types(op)}
    return stages


def _map_computed_string_columns_to_types(op: ir.Operator) -> Mapping[str, DuckDbType]:
    """Return the types of the columns to which an ``extend`` assigns the result of a function that returns a string."""
    if not isinstance(op, ir.Extend):
        return _NONE
    names = [each.name for each in op.expressions]
    return {
        each.name: "VARCHAR"
        for each in op.expressions
        if type(each) is ir.NamedExpr and each.name is not None and names.count(each.name) == 1
        if isinstance(each.expr, ir.FunctionCall) and each.expr.name.lower() in _TEXT_FUNCTIONS
    }


def bind_input_types(op: ir.Operator) -> contextlib.AbstractContextManager[object]:
    """Context manager: provide the types of an operator's input columns during the translation of the operator."""
    stage = _STAGES.get().get(id(op))
    return contextlib.nullcontext() if stage is None else _TYPES.bound(stage)


def infer_type(expr: ir.Expr) -> KustoType | None:
    """Return the Kusto type of an expression; None if the type is unknown before DuckDB binds the SQL."""
    match expr:
        case ir.Literal() | ir.Parameter():
            return _ALIASES.get(expr.kind, expr.kind)
        case ir.ColumnRef():
            return _KINDS.get(_TYPES.get().get(expr.name, ""))
        case ir.PathAccess():
            return "dynamic"
        case ir.FunctionCall():
            return _RESULT_OF.get(expr.name.lower())
        case ir.UnaryOp(op="-"):
            return infer_type(expr.operand)
    return None


def can_be_nan(expr: ir.Expr) -> bool:
    """Return whether an expression of type real can be NaN; False only for columns known to contain no NaN."""
    return not isinstance(expr, ir.ColumnRef) or _TYPES.get().get(expr.name) != FINITE_OR_INFINITE


def _collect_assigned_column_names(root: ir.Query | ir.Operator) -> set[str] | None:
    """Return all column names to which a query or operator possibly assigns a value; None if an operator is unknown."""
    names: set[str] = set()
    for node in _iterate_nodes_and_new_column_names(root):
        if isinstance(node, str):
            names.add(node)
        elif _is_operator_or_source_of_unknown_kind(node):
            return None
        elif isinstance(node, MakeSeries) and isinstance(node.axis.expr, ir.ColumnRef):
            names.add(node.axis.expr.name)  # the column becomes an array
        elif isinstance(node, ir.NamedExpr) and node.name is None and not isinstance(node.expr, ir.ColumnRef):
            names.add(_infer_column_name(node.expr))
    return names


def _iterate_nodes_and_new_column_names(root: IrNode) -> Iterator[IrNode]:
    """Yield ``root``, all nodes below it, and the strings below it that can be the name of a new column."""
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif isinstance(node, str):
            yield node
        elif dataclasses.is_dataclass(node) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(_iterate_field_values(node))


def _can_rename_repeated_columns(root: ir.Query | ir.Operator) -> bool:
    """Return whether a query or operator possibly renames a column ``a`` to ``a1``, because the name occurs twice."""
    for node in _iterate_nodes_and_new_column_names(root):
        if isinstance(node, ir.Join | ir.Lookup):
            return True
        if isinstance(node, ir.Project | ir.Summarize):
            names = [each.name for each in _iterate_nodes_and_new_column_names(node) if isinstance(each, ir.ColumnRef)]
            if len(set(names)) < len(names):
                return True
    return False


def _is_operator_or_source_of_unknown_kind(node: object) -> bool:
    if isinstance(node, ir.Operator):
        return not isinstance(node, _KNOWN_OPERATORS)
    return isinstance(node, ir.Source) and not isinstance(node, _KNOWN_SOURCES)


def _iterate_field_values(node: IrNode) -> Iterator[Any]:
    values = (getattr(node, field.name) for field in dataclasses.fields(node))
    if isinstance(node, _READING):
        return (value for value in values if not isinstance(value, str))
    return values


def _infer_column_name(expr: ir.Expr) -> str:
    try:
        return naming.expression_name(expr) or ""
    except KqlError:
        return ""  # the expression has no name that could collide; a missing name is reported elsewhere


def _patch_may_be_dynamic_for_known_types(library_function: Callable[[ir.Expr], bool]) -> Callable[[ir.Expr], bool]:
    def may_be_dynamic(node: ir.Expr) -> bool:
        return library_function(node) and not (
            isinstance(node, ir.ColumnRef) and _TYPES.get().get(node.name, "JSON") != "JSON"
        )

    return may_be_dynamic


def _patch_tostring_for_known_types(library_function: Callable[[ir.Expr], Sql]) -> Callable[[ir.Expr], Sql]:
    def render_tostring(node: ir.Expr) -> Sql:
        if isinstance(node, ir.Literal) and node.kind == "string" and node.value is not None:
            return str(translate.render_expr(node))
        if _is_text_column(node):
            return f"coalesce({translate.render_expr(node)}, '')"
        if _has_whole_number_type(node):
            return f"coalesce(CAST({translate.render_expr(node)} AS VARCHAR), '')"
        return library_function(node)

    return render_tostring


def _has_whole_number_type(node: ir.Expr) -> bool:
    """Return whether an expression is a column, a constant or arithmetic of the type int or long."""
    if isinstance(node, ir.BinaryOp):
        return node.op in _WHOLE_ARITHMETIC and _has_whole_number_type(node.left) and _has_whole_number_type(node.right)
    return isinstance(node, ir.ColumnRef | ir.Literal) and infer_type(node) in ("int", "long")


def _is_text_column(node: ir.Expr) -> bool:
    return isinstance(node, ir.ColumnRef) and _TYPES.get().get(node.name) == "VARCHAR"


type Operands = Sequence[tuple[ir.Expr, Sql]]
"""Each operand of a comparison, and its SQL."""

_TOP: State[frozenset[int]] = State("emulators.kusto.top_of_filter", frozenset)
"""Python ids of the left operands of the top-level comparisons in the ``where`` that is being rendered."""


def _install_simpler_where_comparisons() -> None:
    """Prevent the translator library from converting null to false in the outermost comparisons of a ``where``.

    The ``where`` removes the row in both cases.
    """
    replace_attribute(translate, "render_operator", _patch_where_for_simpler_comparisons)
    replace_attribute(translate, "_apply_null_semantics", _patch_null_results_of_comparisons)
    replace_attribute(translate, "_in_result", _patch_null_results_of_in)


def _patch_where_for_simpler_comparisons(library_function: Callable[..., Sql]) -> Callable[..., Sql]:
    def render_operator(op: ir.Operator, input_sql: Sql, input_columns: list[str] | None = None) -> Sql:
        if not isinstance(op, ir.Where):
            return library_function(op, input_sql, input_columns)
        with _TOP.bound(_collect_outermost_left_operand_ids(op.predicate)):
            return library_function(op, input_sql, input_columns)

    return render_operator


def _collect_outermost_left_operand_ids(predicate: ir.Expr) -> frozenset[int]:
    """Return the ``id()`` of the left operand of each outermost comparison in a ``where`` predicate.

    The ``id()`` identifies the comparison when the library renders it. An operand object that occurs several times is
    omitted, because its ``id()`` could not identify a single comparison.
    """
    counts = collections.Counter(map(id, _iterate_node_references(predicate)))
    lefts = (
        each.left if isinstance(each, ir.BinaryOp) else each.value for each in _iterate_outermost_comparisons(predicate)
    )
    return frozenset(id(left) for left in lefts if counts[id(left)] == 1)


def _iterate_outermost_comparisons(predicate: ir.Expr) -> Iterator[ir.BinaryOp | ir.InList]:
    if isinstance(predicate, ir.BinaryOp) and predicate.op == "and":
        yield from _iterate_outermost_comparisons(predicate.left)
        yield from _iterate_outermost_comparisons(predicate.right)
    elif isinstance(predicate, ir.BinaryOp | ir.InList):
        yield predicate


def _iterate_node_references(root: IrNode) -> Iterator[IrNode]:
    """Yield each node once for every reference to it, but search the nodes below it only once."""
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack.extend(node)
        elif dataclasses.is_dataclass(node):
            yield node
            if id(node) not in seen:
                seen.add(id(node))
                stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))


def _patch_null_results_of_comparisons(library_function: Callable[..., Sql]) -> Callable[..., Sql]:
    """Patch the library so that it does not convert null to false in the outermost comparisons of a ``where``.

    The ``where`` removes the row in both cases.
    """

    def convert_null_unless_outermost(comparison: Sql, when_null: Sql, operands: Operands) -> Sql:
        left, _ = operands[0]
        bare = when_null == "FALSE" and id(left) in _TOP.get()
        return comparison if bare else library_function(comparison, when_null, operands)

    return convert_null_unless_outermost


def _patch_null_results_of_in(library_function: Callable[..., Sql]) -> Callable[..., Sql]:
    def convert_null_of_in_to_false_unless_outermost(comparison: Sql, node: ir.InList, value: Sql) -> Sql:
        bare = not node.negated and id(node.value) in _TOP.get()
        return comparison if bare else library_function(comparison, node, value)

    return convert_null_of_in_to_false_unless_outermost


macros: tuple[str, ...] = ()


def install_into_translator() -> None:
    """Make the translator library use known column types, and simpler comparisons in ``where``."""
    _install_known_types()
    _install_simpler_where_comparisons()
