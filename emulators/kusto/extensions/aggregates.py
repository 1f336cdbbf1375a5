"""KQL aggregates that the translator library lacks, or translates to SQL that is slow or has the wrong type.

In Kusto, the list that ``make_list`` returns has the order of the sorted input rows; in SQL, a list has no order unless
the aggregate states one.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from duckdb_kql import ir, lower, translate
from duckdb_kql._state import State
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, AggregateSpec

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.library import replace_attribute, writer
from emulators.kusto.extensions.sql import Sql
from emulators.kusto.extensions.tabular import DistinctRows, TakeRows
from emulators.kusto.extensions.tree import IrNode

ORDER_COLUMN = '"_kqlorder"'
ORDER_SENSITIVE = frozenset({"make_list", "make_list_if", "make_list_with_nulls", "makelist"})
_SORTING = (ir.Sort, ir.Top)
_UNORDERED = (ir.Summarize, ir.Join, ir.Lookup, ir.Union, ir.Distinct, ir.Count, DistinctRows)
_CONSTANT = re.compile(r"CAST\(-?\d+ AS \w+\)|-?\d+|\$\w+")
"""SQL of a number or of a query parameter."""
_UNSORTABLE = re.compile(r"'(?:[^']|'')*'|true|false|null", re.IGNORECASE)
"""SQL of a literal by which DuckDB does not sort."""
_MAX_ELEMENTS = 1_048_576
"""Maximum length of an aggregated list or set in Kusto."""

_TICKS = "CAST(epoch_us(a) AS DOUBLE) * 10"
macros: tuple[str, ...] = (
    # The number by which Kusto sums and orders a value; a datetime and a timespan count ticks of 100 ns.
    (
        "CREATE OR REPLACE MACRO kql_summable(a DOUBLE) AS a, (a BIGINT) AS CAST(a AS DOUBLE), "
        "(a INTEGER) AS CAST(a AS DOUBLE), (a HUGEINT) AS CAST(a AS DOUBLE), (a DECIMAL(38, 9)) AS CAST(a AS DOUBLE), "
        f"(a INTERVAL) AS {_TICKS}, (a TIMESTAMP) AS {_TICKS} + 621355968000000000"
    ),
    # Overloads, because only DuckDB knows the type of the argument.
    (
        "CREATE OR REPLACE MACRO kql_sum(a BIGINT) AS coalesce(sum(a), 0), (a INTEGER) AS coalesce(sum(a), 0), "
        "(a HUGEINT) AS coalesce(sum(a), 0), (a DOUBLE) AS coalesce(sum(a), 0), (a BOOLEAN) AS coalesce(sum(a), 0), "
        "(a DECIMAL(38, 9)) AS coalesce(sum(a), 0), "
        "(a INTERVAL) AS coalesce(to_microseconds(CAST(sum(epoch_us(a)) AS BIGINT)), INTERVAL '0s')"
    ),
    (
        "CREATE OR REPLACE MACRO kql_list(l) AS CASE typeof(l) WHEN 'TIMESTAMP[]' THEN to_json(list_transform("
        "CAST(CAST(l AS VARCHAR[]) AS TIMESTAMP[]), lambda _e: strftime(_e, '%Y-%m-%dT%H:%M:%S.%f') || '0Z')) "
        "WHEN 'INTERVAL[]' THEN to_json(list_transform(CAST(CAST(l AS VARCHAR[]) AS INTERVAL[]), lambda "
        "_e: kql_span(_e))) "
        "ELSE to_json(l) END"
    ),
    # The elements of an array are elements of the list, as the examples of geo_distance_point_to_line() show.
    (
        "CREATE OR REPLACE MACRO kql_elements(l) AS flatten(list_transform(CAST(l AS JSON[]), lambda _e: "
        "CASE WHEN json_type(_e) = 'ARRAY' THEN CAST(_e AS JSON[]) ELSE [_e] END))"
    ),
    (
        "CREATE OR REPLACE MACRO kql_flat_list(l, n) AS CASE typeof(l) WHEN 'JSON[]' THEN "
        "to_json(list_slice(kql_elements(l), 1, n)) ELSE kql_list(list_slice(l, 1, n)) END"
    ),
    (
        "CREATE OR REPLACE MACRO kql_set(l, n) AS CASE typeof(l) WHEN 'JSON[]' THEN "
        "to_json(list_slice(list_sort(list_distinct(kql_elements(l))), 1, n)) "
        "ELSE kql_list(list_slice(l, 1, n)) END"
    ),
    (
        "CREATE OR REPLACE MACRO kql_bag(l) AS list_transform([list_sort(flatten(list_transform(l, lambda _b: "
        "map_entries(_b))))], lambda _s: to_json(map_from_entries(list_filter(_s, lambda _e, _i: _i = 1 OR "
        "_s[_i - 1].key <> _e.key))))[1]"
    ),
)

_PLAIN = (
    ("sum", "kql_sum({0})", 1),
    ("sumif", "kql_sum(CASE WHEN {1} THEN {0} END)", 2),
    ("avg", "kql_avg({0})", 1),
    ("avgif", "kql_avg(CASE WHEN {1} THEN {0} END)", 2),
    ("stdev", "coalesce(stddev_samp(kql_summable({0})), 0.0)", 1),
    ("stdevif", "coalesce(stddev_samp(kql_summable({0})) FILTER (WHERE {1}), 0.0)", 2),
    ("stdevp", "coalesce(stddev_pop(kql_summable({0})), 0.0)", 1),
    ("stdevpif", "coalesce(stddev_pop(kql_summable({0})) FILTER (WHERE {1}), 0.0)", 2),
    ("variance", "coalesce(var_samp(kql_summable({0})), 0.0)", 1),
    ("varianceif", "coalesce(var_samp(kql_summable({0})) FILTER (WHERE {1}), 0.0)", 2),
    ("variancep", "coalesce(var_pop(kql_summable({0})), 0.0)", 1),
    ("variancepif", "coalesce(var_pop(kql_summable({0})) FILTER (WHERE {1}), 0.0)", 2),
    ("covariance", "coalesce(covar_samp(kql_summable({0}), kql_summable({1})), 0.0)", 2),
    ("covarianceif", "coalesce(covar_samp(kql_summable({0}), kql_summable({1})) FILTER (WHERE {2}), 0.0)", 3),
    ("covariancep", "coalesce(covar_pop(kql_summable({0}), kql_summable({1})), 0.0)", 2),
    ("covariancepif", "coalesce(covar_pop(kql_summable({0}), kql_summable({1})) FILTER (WHERE {2}), 0.0)", 3),
    ("count_distinct", "count(DISTINCT {0})", 1),
    ("count_distinctif", "count(DISTINCT {0}) FILTER (WHERE {1})", 2),
)
_NAMED_LIKE_ARGUMENT = (
    ("take_anyif", "any_value({0}) FILTER (WHERE {1})", 2),
    ("binary_all_and", "bit_and({0})", 1),
    ("binary_all_or", "bit_or({0})", 1),
    ("binary_all_xor", "bit_xor({0})", 1),
)

SUPPORTED: tuple[str, ...] = (
    *(name for name, _, _ in (*_PLAIN, *_NAMED_LIKE_ARGUMENT)),
    "minif",
    "maxif",
    "anyif",
    "make_list and make_set with a maximum size, in the order of a sorted input",
    "make_list_if",
    "make_list_with_nulls",
    "make_set_if",
    "make_bag",
    "make_bag_if",
    "percentiles",
    "percentilew",
    "percentilesw",
    "percentiles_array",
    "percentilesw_array",
    "take_any (several, *)",
    "arg_max and arg_min (expressions, *)",
    "(a, b) = aggregate(...)",
)

_ORDERED: State[bool] = State("emulators.kusto.ordered", lambda: False)


@dataclasses.dataclass(frozen=True)
class OrderedSummarize(ir.Summarize):
    """Query operator ``summarize`` over sorted rows; lists, as from ``make_list``, keep the order of the rows."""


def _patch_query_conversion_to_keep_list_order(library_function: Callable[..., ir.Query]) -> Callable[..., ir.Query]:
    def convert_query_keeping_list_order(kql_text: str, *library_arguments: Any) -> ir.Query:
        query = library_function(kql_text, *library_arguments)
        _replace_summarize_and_test_if_sorted(query, {}, set())
        return query

    return convert_query_keeping_list_order


def _replace_summarize_and_test_if_sorted(query: ir.Query, sorted_lets: Mapping[str, bool], seen_ids: set[int]) -> bool:
    """Replace each ``summarize`` over sorted rows in a query and its subqueries by an `OrderedSummarize`.

    Args:
        query: query to change in place.
        sorted_lets: for each ``let`` name, whether its rows are sorted.
        seen_ids: ``id()`` of the nodes that were visited before; visited nodes are added.

    Returns:
        True if the rows that the query returns are sorted.
    """
    known = dict(sorted_lets)
    for name, bound in query.lets:
        known[name] = isinstance(bound, ir.Query) and _replace_summarize_and_test_if_sorted(bound, known, seen_ids)
    for inner in _iterate_nested_queries((query.source, query.operators), seen_ids):
        _replace_summarize_and_test_if_sorted(inner, known, seen_ids)
    is_sorted = isinstance(query.source, ir.TableRef) and known.get(query.source.name, False)
    for index, op in enumerate(query.operators):
        if type(op) is ir.Summarize and is_sorted and is_order_sensitive(op):
            query.operators[index] = OrderedSummarize(op.aggregates, op.by)
        is_sorted = _are_rows_sorted_after(op, sorted_before=is_sorted)
    return is_sorted


def _are_rows_sorted_after(op: ir.Operator, *, sorted_before: bool) -> bool:
    if isinstance(op, _SORTING) or (isinstance(op, TakeRows) and op.keys):
        return True
    return sorted_before and not isinstance(op, _UNORDERED)


def is_order_sensitive(op: ir.Summarize) -> bool:
    """Return whether a ``summarize`` has an aggregate whose result depends on the order of the rows."""
    calls = (node for node in _iterate_nodes(op.aggregates, set()) if isinstance(node, ir.FunctionCall))
    return any(call.name.lower() in ORDER_SENSITIVE for call in calls)


def _iterate_nested_queries(root: IrNode, seen_ids: set[int]) -> Iterator[ir.Query]:
    return (node for node in _iterate_nodes(root, seen_ids) if isinstance(node, ir.Query))


def _iterate_nodes(root: IrNode, seen_ids: set[int]) -> Iterator[IrNode]:
    """Yield each node of a query's intermediate representation once; yield subqueries without their inner nodes."""
    stack: list[object] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and not isinstance(node, type) and id(node) not in seen_ids:
            seen_ids.add(id(node))
            yield node
            if not isinstance(node, ir.Query):
                stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))


@dataclasses.dataclass(frozen=True)
class ListAggregate(AggregateSpec):
    """Aggregate that returns a list of its input values, such as ``make_list`` or ``make_set_if``.

    Attributes:
        predicate: index of the argument with the condition; None if the function has no such argument.
        size: index of the argument with the maximum size; None if the function has no such argument.
        distinct: True if duplicate values are removed.
        nulls: True if the list includes null values.
    """

    predicate: int | None = None
    size: int | None = None
    distinct: bool = False
    nulls: bool = False

    def render(self, args: list[Sql]) -> Sql:
        """Return the SQL of the aggregate; the arguments are SQL texts."""
        max_arguments = (self.size if self.size is not None else self.predicate or 0) + 1
        if not (self.predicate or 0) < len(args) <= max_arguments:
            raise ValueError(f"{self.name}() does not accept {len(args)} arguments")
        if self.size and len(args) > self.size and not _CONSTANT.fullmatch(args[self.size]):
            raise semantic_error(f"{self.name}(): the argument maxSize must be a constant", inner="SEM0219")
        elements = self._render_list_of_elements(args)
        limit = f"CAST({args[self.size]} AS BIGINT)" if self.size and len(args) > self.size else str(_MAX_ELEMENTS)
        listed = f"coalesce({elements}, [])"
        if self.nulls:
            return f"kql_list(list_slice({listed}, 1, {limit}))"
        # The result is cut after arrays are flattened.
        return f"kql_set({listed}, {limit})" if self.distinct else f"kql_flat_list({listed}, {limit})"

    def _render_list_of_elements(self, args: list[Sql]) -> Sql:
        conditions = [] if self.nulls else [f"{args[0]} IS NOT NULL"]
        if self.predicate is not None:
            conditions.append(args[self.predicate])
        where = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        if self.distinct:
            order = "" if _UNSORTABLE.fullmatch(args[0]) else f" ORDER BY {args[0]}"
            return f"list(DISTINCT {args[0]}{order}){where}"
        order = f" ORDER BY {ORDER_COLUMN}" if _ORDERED.get() else ""
        return f"list({args[0]}{order}){where}"


@dataclasses.dataclass(frozen=True)
class BagAggregate(AggregateSpec):
    """Aggregate ``make_bag`` or ``make_bag_if``: merges JSON objects; a repeated key gets any one of its values."""

    conditional: bool = False

    def render(self, args: list[Sql]) -> Sql:
        """Return the SQL of the aggregate; the arguments are SQL texts."""
        if len(args) != 1 + self.conditional:
            raise ValueError(f"{self.name}() does not accept a maximum size")
        parsed = f"TRY(from_json({args[0]}, '\"MAP(VARCHAR,JSON)\"'))"
        where = f"json_type({args[0]}) = 'OBJECT'" + (f" AND {args[1]}" if self.conditional else "")
        return f"kql_bag(coalesce(list({parsed}) FILTER (WHERE {where}), []))"


def install_into_translator() -> None:
    """Add the aggregates to the translator library; make ``make_list`` preserve the order of sorted rows."""
    for name, sql, arity in _PLAIN:
        _register_aggregate(AggregateSpec(name, sql, (arity,)))
    for name, sql, arity in _NAMED_LIKE_ARGUMENT:
        _register_aggregate(AggregateSpec(name, sql, (arity,), name_is_argument=True))
    _register_aggregate(AggregateSpec("anyif", "any_value({0}) FILTER (WHERE {1})", (2,)))
    _register_aggregate(ListAggregate("make_list", "", name_prefix="list", size=1))
    _register_aggregate(ListAggregate("make_list_if", "", name_prefix="list", predicate=1, size=2))
    _register_aggregate(ListAggregate("make_list_with_nulls", "", name_prefix="list", nulls=True))
    _register_aggregate(ListAggregate("make_set", "", name_prefix="set", size=1, distinct=True))
    _register_aggregate(ListAggregate("make_set_if", "", name_prefix="set", predicate=1, size=2, distinct=True))
    _register_aggregate(BagAggregate("make_bag", "", name_prefix="bag"))
    _register_aggregate(BagAggregate("make_bag_if", "", name_prefix="bag", conditional=True))
    for old, new in (("makelist", "make_list"), ("makeset", "make_set")):
        AGGREGATE_FUNCTIONS[old] = AGGREGATE_FUNCTIONS[new]
    _install_support_for_aggregate_paths()
    replace_attribute(translate, "render_summarize", _patch_summarize_to_order_lists)
    replace_attribute(lower, "_lower", _patch_query_conversion_to_keep_list_order)


def _register_aggregate(spec: AggregateSpec) -> None:
    AGGREGATE_FUNCTIONS[spec.name] = spec


def _patch_summarize_to_order_lists(library_function: Callable[..., Sql]) -> Callable[..., Sql]:
    def render_summarize_with_ordered_lists(
        op: ir.Summarize, input_sql: Sql, input_columns: list[str] | None = None
    ) -> Sql:
        if not isinstance(op, OrderedSummarize):
            return library_function(op, input_sql, input_columns)
        with _ORDERED.bound(True):
            numbered = f"(SELECT *, row_number() OVER () AS {ORDER_COLUMN} FROM {input_sql})"  # noqa: S608  a stage's name
            return library_function(op, numbered, input_columns)

    return render_summarize_with_ordered_lists


def _install_support_for_aggregate_paths() -> None:
    """Make ``summarize`` accept a path into an aggregate's result, as in ``make_list(x)[0]`` or ``take_any(d).a``."""
    default: Callable[..., tuple[ir.Expr, int]] = writer.lift_aggregates
    render = translate.render_aggregate

    def replace_aggregates_by_sql_and_count(expr: ir.Expr, *, depth: int = 0) -> tuple[ir.Expr, int]:
        if not isinstance(expr, ir.PathAccess):
            return default(expr, depth=depth)
        base, found = replace_aggregates_by_sql_and_count(expr.base, depth=depth)
        return dataclasses.replace(expr, base=base), found

    def render_aggregate_or_path(named: ir.NamedExpr) -> Sql:
        if not isinstance(named.expr, ir.PathAccess):
            return render(named)
        lifted, found = replace_aggregates_by_sql_and_count(named.expr)
        if not found:
            raise KqlUnsupportedError("summarize", hint="each of its expressions must contain an aggregate function")
        return translate.render_expr(lifted)

    replace_attribute(translate, "_lift_aggregates", lambda _: replace_aggregates_by_sql_and_count)
    replace_attribute(translate, "render_aggregate", lambda _: render_aggregate_or_path)
