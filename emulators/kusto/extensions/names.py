"""KQL syntax and functions about names: ``(a, b) = f(x)``, named arguments, ``column_ifexists`` and ``pack_all``.

A column that a query does not name, such as ``strlen(S)``, gets a name such as ``strlen_S``. The rules are those of
Microsoft's language service: the name of a function, of its argument, or both. The translator library knows the names
that its authors measured on Microsoft's Kusto emulator; these names take precedence.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir, lower, schema
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import naming
from duckdb_kql.translate.functions import lookup_aggregate

from emulators.kusto.errors import semantic_error, unresolved_name_error, unsupported_error
from emulators.kusto.extensions.language import read_kql_function_descriptions
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.pipeline import OperatorParser
from emulators.kusto.extensions.tree import (
    IrNode,
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    iterate_nodes,
    list_nodes_by_rule,
)

SUPPORTED: tuple[str, ...] = (
    "column_ifexists",
    "columnifexists",
    "pack_all",
)


type Expansion = Callable[["NameListExpr"], list[ir.NamedExpr]]
MULTI_RESULT_FUNCTIONS: dict[str, Expansion] = {}
"""Scalar functions with several results, by name.

Each value is a function that expands ``(a, b) = f(x)`` into one named expression for each name.
"""


@dataclasses.dataclass(frozen=True)
class NameListExpr(ir.NamedExpr):
    """Expression with several named results, as in ``(a, b) = f(x)``; ``name`` is the name of the first result."""

    names: tuple[str, ...] = ()


def _install_name_lists_and_named_arguments() -> None:
    """Add lists of names and named arguments to the KQL translator library, which otherwise ignores this syntax."""
    replace_attribute(lower, "_lower_named", _patch_named_expressions_for_name_lists)
    replace_attribute(lower, "_lower_operator", _patch_operators_for_name_lists)
    replace_attribute(lower, "_lower_source", _patch_print_for_name_lists)
    replace_attribute(lower, "_lower_function_call", _wrap_call_parser_to_accept_named_arguments)


def _patch_named_expressions_for_name_lists(
    library_function: Callable[[ParseNode], ir.NamedExpr],
) -> Callable[[ParseNode], ir.NamedExpr]:
    """Patch the parser so that ``(a, b) = f(x)`` becomes a `NameListExpr`."""

    def convert_named_expression(node: ParseNode) -> ir.NamedExpr:
        inner = reader.collapse(node)
        parts = get_child_rules(inner)
        lists = list_nodes_by_rule(parts[0], "NamedExpressionNameList") if len(parts) == 2 else []  # noqa: PLR2004
        if get_rule_name(inner) not in ("NamedExpression", "ArgumentExpression") or not lists:
            return library_function(node)
        names = tuple(reader.find_names(lists[0]))
        return NameListExpr(reader.lower_expr(parts[1]), names[0], names)

    return convert_named_expression


def _patch_operators_for_name_lists(library_function: OperatorParser) -> OperatorParser:
    """Patch the parser to expand lists of names in ``extend`` and ``project``; reject them in other operators."""

    def convert_operator(node: ParseNode) -> ir.Operator | list[ir.Operator] | None:
        op = library_function(node)
        if isinstance(op, ir.Extend | ir.Project):
            return dataclasses.replace(op, expressions=tuple(_expand_name_lists(op.expressions)))
        if isinstance(op, ir.Summarize):
            _reject_name_lists(op.by, node)
        elif isinstance(op, ir.Operator):
            _reject_name_lists(getattr(op, "expressions", ()), node)
        return op

    return convert_operator


def _patch_print_for_name_lists(library_function: Callable[[ParseNode], ir.Source]) -> Callable[[ParseNode], ir.Source]:
    """Patch the parser to expand lists of names in the KQL statement ``print``."""

    def convert_source(node: ParseNode) -> ir.Source:
        source = library_function(node)
        if isinstance(source, ir.PrintSource):
            return dataclasses.replace(source, expressions=tuple(_expand_name_lists(source.expressions)))
        return source

    return convert_source


def _expand_name_lists(expressions: tuple[ir.NamedExpr, ...]) -> Iterator[ir.NamedExpr]:
    for named in expressions:
        if not isinstance(named, NameListExpr):
            yield named
            continue
        name = named.expr.name.lower() if isinstance(named.expr, ir.FunctionCall) else ""
        if name not in MULTI_RESULT_FUNCTIONS:
            raise unsupported_error(
                "several column names for one value", f"assign one name to {name or 'this expression'}"
            )
        yield from MULTI_RESULT_FUNCTIONS[name](named)


def _reject_name_lists(expressions: tuple[ir.NamedExpr, ...], node: ParseNode) -> None:
    if any(isinstance(named, NameListExpr) for named in expressions):
        raise unsupported_error(
            "a list of names on the left of =",
            "create the columns with extend before this operator",
            get_line_and_column(node),
        )


def _wrap_call_parser_to_accept_named_arguments(
    library_function: Callable[[ParseNode], ir.Expr],
) -> Callable[[ParseNode], ir.Expr]:
    def convert_function_call(node: ParseNode) -> ir.Expr:
        parts = get_child_rules(node)
        if len(parts) > 1 and any(find_argument_name(part) for part in parts[1:]):
            return _parse_call_with_named_arguments(node, parts)
        return library_function(node)

    return convert_function_call


def _parse_call_with_named_arguments(node: ParseNode, child_nodes: list[ParseNode]) -> ir.Expr:
    name = child_nodes[0].getText()
    declared = reader.LET_FUNCTIONS_STATE.get().get(name)
    if declared is None or declared.body is None:
        raise unsupported_error(
            f"a call of {name[:100]}() with named arguments",
            "write the arguments without names",
            get_line_and_column(node),
        )
    args = match_arguments_to_parameters(name, [parameter for parameter, _ in declared.parameters], child_nodes[1:])
    filled = []
    for (parameter, default), arg in zip(declared.parameters, args, strict=True):
        if arg is None and default is None:
            reason = f"the call of {name}() lacks the argument {parameter!r}"
            raise KqlUnsupportedError(f"let function:{name}", hint=reason)
        filled.append(default if arg is None else reader.lower_expr(arg))
    inlined: ir.Expr = reader.inline_let_function(node, declared, tuple(filled))
    return inlined


def match_arguments_to_parameters(
    function_name: str, parameter_names: list[str], argument_nodes: list[ParseNode]
) -> list[ParseNode | None]:
    """Assign the arguments of a call to its parameters; return one parse tree node per parameter, None if missing.

    Positional arguments come first; named arguments may follow in any order.

    Raises:
        QueryError: the name of an argument is unknown or repeated, or the call has too many arguments.
    """
    found: dict[str, Any] = {}
    for index, node in enumerate(argument_nodes):
        name = find_argument_name(node) or (parameter_names[index] if index < len(parameter_names) else None)
        if name not in parameter_names or name in found:
            fault = "too many arguments" if name is None else f"unknown or repeated argument {name[:100]!r}"
            raise semantic_error(
                f"{function_name[:100]}(): {fault}", inner="SEM0219", position=get_line_and_column(node)
            )
        found[str(name)] = _get_argument_value_node(node)
    return [found.get(parameter) for parameter in parameter_names]


def find_argument_name(node: ParseNode) -> str | None:
    """Return the name of an argument ``name = value``; None for a positional argument."""
    inner = reader.collapse(node)
    parts = get_child_rules(inner)
    if get_rule_name(inner) in ("NamedExpression", "ArgumentExpression") and len(parts) == 2:  # noqa: PLR2004
        names: list[str] = reader.find_names(parts[0])
        return names[0] if names else str(parts[0].getText()).rstrip("= ")
    return None


def _get_argument_value_node(node: ParseNode) -> ParseNode:
    inner = reader.collapse(node)
    return get_child_rules(inner)[1] if find_argument_name(node) else inner


def _install_column_functions() -> None:
    """Make the translator library replace ``column_ifexists`` and ``pack_all`` by expressions over existing columns.

    The library does so when it knows the input columns of the query operator that contains the call.
    """
    replace_attribute(schema, "resolve_let_refs", _patch_let_references_for_column_functions)


def _patch_let_references_for_column_functions(
    library_function: Callable[..., ir.Operator],
) -> Callable[..., ir.Operator]:
    """Patch the resolution of ``let`` references so that it also replaces ``column_ifexists`` and ``pack_all``."""

    def resolve_let_references(op: ir.Operator, input_columns: list[str] | None) -> ir.Operator:
        # A parameter of a function, resolved by the library, can be the name of the column.
        resolved: ir.Operator = _ColumnFunctionResolver(input_columns).resolve(library_function(op, input_columns))
        return resolved

    return resolve_let_references


class _ColumnFunctionResolver:
    """Resolver that replaces calls such as ``pack_all`` in an operator by expressions over the input columns.

    If a node object occurs several times, a single new object replaces all occurrences.
    """

    def __init__(self, input_columns: Sequence[str] | None) -> None:
        self._cols = input_columns
        self._done: dict[int, Any] = {}

    def resolve(self, node: IrNode) -> IrNode:
        if isinstance(node, ir.Query) or not isinstance(node, ir.Node | tuple):
            return node
        if id(node) not in self._done:
            # The reference to the original prevents that another node gets the same id.
            self._done[id(node)] = node, self._resolve_new_node(node)
        return self._done[id(node)][1]

    def _resolve_new_node(self, node: IrNode) -> IrNode:
        if isinstance(node, tuple):
            parts = tuple(map(self.resolve, node))
            return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
        if isinstance(node, ir.NamedExpr) and node.name is None and _is_column_ifexists_call(node.expr):
            raise unsupported_error(
                "column_ifexists() as an output column without a name",
                "name the output column, for instance x = column_ifexists(...)",
            )
        if isinstance(node, ir.FunctionCall) and _depends_on_input_columns(node):
            return self._replace_column_function_call(node)
        changed = {
            field.name: new
            for field in dataclasses.fields(node)
            if (new := self.resolve(old := getattr(node, field.name))) is not old
        }
        return dataclasses.replace(node, **changed) if changed else node

    def _replace_column_function_call(self, call: ir.FunctionCall) -> ir.Expr:
        if self._cols is None:
            raise unsupported_error(f"{call.name}()", "the columns of the operator's input depend on the data")
        return _FUNCTIONS[call.name.lower()](call, self._cols)


def _depends_on_input_columns(call: ir.FunctionCall) -> bool:
    if call.name in _WITH_STAR:
        return any(isinstance(arg, ir.Wildcard) for arg in call.args)
    return call.name.lower() in _FUNCTIONS


def _is_column_ifexists_call(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.FunctionCall) and expr.name.lower() in ("column_ifexists", "columnifexists")


def _resolve_column_ifexists(call: ir.FunctionCall, input_columns: Sequence[str]) -> ir.Expr:
    if len(call.args) != 2:  # noqa: PLR2004
        raise semantic_error("column_ifexists(): function expects 2 argument(s)", inner="SEM0219")
    name, otherwise = call.args
    if not isinstance(name, ir.Literal) or name.kind != "string":
        raise semantic_error("column_ifexists(): the name must be a literal of type string", inner="SEM0219")
    if name.value not in input_columns:
        return otherwise
    # The result does not depend on the other value, so that DuckDB would not see an unknown name in it.
    for node in iterate_nodes(otherwise):
        if isinstance(node, ir.ColumnRef) and node.name not in input_columns:
            raise unresolved_name_error(node.name)
    return ir.ColumnRef(str(name.value))


_NOTHING = ir.Literal("", "string")


def _resolve_pack_all(call: ir.FunctionCall, input_columns: Sequence[str]) -> ir.Expr:
    ignores = call.args[0] if call.args else ir.Literal(value=False, kind="bool")
    if len(call.args) > 1 or not isinstance(ignores, ir.Literal):
        raise semantic_error("pack_all(): the argument must be a literal of type bool", inner="SEM0219")
    if ignores.kind != "bool":
        raise unsupported_error("pack_all() with a literal that is not a bool", "write true or false")
    pairs = [part for name in input_columns for part in (ir.Literal(name, "string"), ir.ColumnRef(name))]
    if not ignores.value:
        return ir.FunctionCall("bag_pack", tuple(pairs))
    empty = [
        ir.FunctionCall(
            "iff", (ir.FunctionCall("isempty", (ir.ColumnRef(name),)), ir.Literal(name, "string"), _NOTHING)
        )
        for name in input_columns
    ]
    packed = ir.FunctionCall("bag_pack", tuple(pairs))
    return ir.FunctionCall("bag_remove_keys", (packed, ir.FunctionCall("pack_array", tuple(empty))))


_WITH_STAR = ("estimate_data_size", "pack_array")
"""Functions that accept ``*`` for all columns."""


def _expand_star_arguments(call: ir.FunctionCall, input_columns: Sequence[str]) -> ir.Expr:
    columns = tuple(map(ir.ColumnRef, input_columns))
    args = [columns if isinstance(arg, ir.Wildcard) else (arg,) for arg in call.args]
    return dataclasses.replace(call, args=tuple(itertools.chain.from_iterable(args)))


_FUNCTIONS: dict[str, Callable[[ir.FunctionCall, Sequence[str]], ir.Expr]] = {
    "column_ifexists": _resolve_column_ifexists,
    "columnifexists": _resolve_column_ifexists,
    "pack_all": _resolve_pack_all,
    **dict.fromkeys(_WITH_STAR, _expand_star_arguments),
}

type DefaultNameFinder = Callable[[ir.Expr], str | None]
type NamingRule = Mapping[str, Any]
"""Rule for the name of a result column, as in ``language.json``: ``prefix`` and ``argument``."""

_MEASURED = naming.NAME_PRESERVING | {
    *("strlen", "gettype", "array_sort_asc", "array_sort_desc"),
    *("pow", "exp10", "sign", "cot", "degrees", "radians", "trim", "trim_start", "trim_end", "tolower", "startofweek"),
}
"""Functions whose column names the library's authors measured; those in the last line give their column no name."""

_SEVERAL = 2
"""Least number of arguments of a function that has the name of an aggregate, such as ``hll_merge``."""


def _find_result_column_naming_rule(call: ir.FunctionCall) -> NamingRule | None:
    """Return the naming rule for the result column of a call; None if the translator library chooses the name."""
    functions, aggregates = read_kql_function_descriptions("functions"), read_kql_function_descriptions("aggregates")
    is_aggregate = call.name in aggregates and (call.name not in functions or len(call.args) < _SEVERAL)
    if call.name in _MEASURED or (is_aggregate and lookup_aggregate(call.name) is not None):
        return None
    symbol = (aggregates if is_aggregate else functions).get(call.name)
    return None if symbol is None else symbol.get("naming")


def _patch_default_column_names(library_function: DefaultNameFinder) -> DefaultNameFinder:
    def find_default_column_name(expr: ir.Expr) -> str | None:
        rule = _find_result_column_naming_rule(expr) if isinstance(expr, ir.FunctionCall) else None
        if rule is None or not isinstance(expr, ir.FunctionCall):
            return library_function(expr)
        prefix = rule.get("prefix")
        if rule["argument"] == "none":
            return str(prefix)
        if rule["argument"] == "only" and len(expr.args) != 1:
            return None
        # The names of the arguments follow the same rules.
        name = naming.expression_name(expr.args[0]) if expr.args else None
        return f"{prefix}_{name or ''}" if prefix else name

    return find_default_column_name


macros: tuple[str, ...] = ()


def install_into_translator() -> None:
    """Add name lists, named arguments, ``column_ifexists`` and ``pack_all`` to the KQL translator library.

    Also make the library use the default column names of Microsoft's language service.
    """
    _install_name_lists_and_named_arguments()
    _install_column_functions()
    replace_attribute(naming, "expression_name", _patch_default_column_names)
