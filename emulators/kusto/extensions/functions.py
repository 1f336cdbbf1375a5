"""User-defined ``let`` functions that return rows; each call is converted to a ``let`` statement."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from duckdb_kql import ir, lower
from duckdb_kql._state import State
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.extensions.library import reader, replace, writer
from emulators.kusto.extensions.names import order_arguments
from emulators.kusto.extensions.tree import get_child_rules, get_rule_name

SUPPORTED: tuple[str, ...] = ("let functions that return rows, with scalar and tabular parameters, called by name",)

macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class FunctionParameter:
    """Parameter of a ``let`` function; ``default`` is None if the parameter is required."""

    name: str
    tabular: bool
    default: ir.Expr | None = None


@dataclasses.dataclass(frozen=True)
class RowFunction:
    """Declared ``let`` function that returns rows.

    Attributes:
        name: name of the function.
        parameters: parameters in order.
        body: parse tree of the function body, the text between the braces.
        scalars: scalar names that were in scope at the declaration, with their values.
        tables: names of tables that were in scope.
        row_functions: other functions that return rows and were in scope, by name.
        scalar_functions: functions that return a scalar and were in scope, by name.
    """

    name: str
    parameters: tuple[FunctionParameter, ...]
    body: Any
    scalars: Mapping[str, ir.Expr]
    tables: frozenset[str]
    row_functions: Mapping[str, "RowFunction"]
    scalar_functions: Mapping[str, Any]


_FUNCTIONS: State[dict[str, RowFunction]] = State("emulators.kusto.row_functions", dict)


def install() -> None:
    """Add declarations and calls of ``let`` functions that return rows to the translator library."""
    replace(lower, "_lower", _wrap_lower)
    replace(lower, "_declare_let_function", _wrap_declare)
    replace(lower, "_stored_call_source", _wrap_call_source)
    replace(lower, "_is_tabular_value", _wrap_is_tabular)
    replace(lower, "_lower_function_call", _wrap_call_expression)


def _wrap_lower(default: Callable[..., ir.Query]) -> Callable[..., ir.Query]:
    def lower_query(*args: Any) -> ir.Query:
        with _FUNCTIONS.bound({}):
            return default(*args)

    return lower_query


def _find_called_function(node: Any) -> RowFunction | None:
    parts = get_child_rules(node)
    return _FUNCTIONS.get().get(parts[0].getText()) if parts else None


def _wrap_call_source(default: Callable[[Any], ir.Source | None]) -> Callable[[Any], ir.Source | None]:
    def lower_call_source(node: Any) -> ir.Source | None:
        function = _find_called_function(node)
        return default(node) if function is None else _expand_call(function, node)

    return lower_call_source


def _wrap_is_tabular(default: Callable[..., bool]) -> Callable[..., bool]:
    def is_tabular(node: Any, scalars: dict[str, ir.Expr]) -> bool:
        inner = reader.unparenthesize(node)
        if get_rule_name(inner) == "NamedFunctionCallExpression" and _find_called_function(inner):
            return True
        return default(node, scalars)

    return is_tabular


def _wrap_call_expression(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_call_expression(node: Any) -> ir.Expr:
        function = _find_called_function(node)
        if function is not None:
            # For `x in (f())` this error tells the library that the list is a table.
            raise KqlUnsupportedError(
                f"let function:{function.name}", hint="it returns rows and cannot be used as a value"
            )
        return default(node)

    return lower_call_expression


def _wrap_declare(default: Callable[[Any, dict[str, ir.Expr]], None]) -> Callable[[Any, dict[str, ir.Expr]], None]:
    def declare_function(decl: Any, scalars: dict[str, ir.Expr]) -> None:
        function = _read_declaration(decl, scalars)
        if not _returns_rows(function):
            default(decl, scalars)
            return
        if any(parameter.tabular for parameter in function.parameters):
            # Functions that the library can insert into a pipeline remain available for `invoke`.
            with contextlib.suppress(KqlUnsupportedError):
                default(decl, scalars)
        _FUNCTIONS.get()[function.name] = function

    return declare_function


def _read_declaration(decl: Any, scalars: Mapping[str, ir.Expr]) -> RowFunction:
    name, *parts = get_child_rules(decl)
    parameters = [
        each for part in parts if get_rule_name(part) == "LetFunctionParameterList" for each in get_child_rules(part)
    ]
    scope = reader.FN_STATE.get()
    return RowFunction(
        reader.find_names(name)[0],
        tuple(_read_parameter(each) for each in parameters),
        next(part for part in parts if get_rule_name(part) == "LetFunctionBody"),
        dict(scalars),
        scope.visible if scope else frozenset(),
        dict(_FUNCTIONS.get()),
        dict(reader.LET_FUNCTIONS_STATE.get()),
    )


def _read_parameter(node: Any) -> FunctionParameter:
    if get_rule_name(node) == "TabularParameter":
        return FunctionParameter(reader.tabular_parameter_name(node), tabular=True)
    name, default = reader.lower_let_parameter(node)
    return FunctionParameter(name, tabular=False, default=default)


def _returns_rows(function: RowFunction) -> bool:
    """Return whether the last expression of a function body is a table; a name may be a table or a scalar."""
    scalars = {**function.scalars, **{each.name: ir.ColumnRef(each.name) for each in function.parameters}}
    tables = {each.name for each in function.parameters if each.tabular}
    for statement in get_child_rules(function.body):
        value = reader.unparenthesize(statement)
        if get_rule_name(statement) != "LetFunctionBodyStatement":
            name = reader.name_text(value)
            return name in tables or bool(reader.is_tabular_value(value, scalars))
        for declaration in reader.find_all(statement, "LetVariableDeclaration"):
            local, bound = get_child_rules(declaration)[0], get_child_rules(declaration)[-1]
            if reader.is_tabular_value(reader.collapse(bound), scalars):
                tables.update(reader.find_names(local))
            else:
                scalars.update(dict.fromkeys(reader.find_names(local), ir.Wildcard()))
    return False


def _expand_call(function: RowFunction, node: Any) -> ir.TableRef:
    scope = reader.FN_STATE.get()
    nodes = order_arguments(function.name, [each.name for each in function.parameters], get_child_rules(node)[1:])
    scalars: dict[str, ir.Expr] = {}
    tables: list[tuple[str, ir.Query]] = []
    for parameter, argument in zip(function.parameters, nodes, strict=True):
        if parameter.tabular:
            tables.append((parameter.name, _lower_table_argument(function, argument, scope.scalars)))
        else:
            scalars[parameter.name] = _lower_scalar_argument(function, parameter, argument, scope.scalars)
    later = scope.visible - function.tables
    with _enter_declared_scope(function):
        query = _lower_function_body(function, scalars, tables)
    shadowed = writer.free_table_names(query) & later
    if shadowed:
        raise KqlUnsupportedError(
            f"let function:{function.name}", hint=f"{min(shadowed)!r} is redefined after the declaration"
        )
    name = reader.fresh_name(function.name)
    scope.pending[-1].append((name, query))
    return ir.TableRef(name)


def _lower_scalar_argument(
    function: RowFunction, parameter: FunctionParameter, node: Any, scalars: dict[str, ir.Expr]
) -> ir.Expr:
    if node is None:
        if parameter.default is None:
            raise KqlUnsupportedError(
                f"let function:{function.name}", hint=f"the argument {parameter.name!r} is missing"
            )
        return parameter.default
    value: ir.Expr = reader.substitute(reader.lower_expr(node), scalars)
    if reader.reads_row(value):
        raise KqlUnsupportedError(
            f"let function:{function.name}",
            hint="an argument refers to a column; only constants and tables are supported",
        )
    return value


def _lower_table_argument(function: RowFunction, node: Any, scalars: dict[str, ir.Expr]) -> ir.Query:
    if node is None:
        raise KqlUnsupportedError(f"let function:{function.name}", hint="a tabular argument is missing")
    query: ir.Query = reader.substitute_query(reader.lower_query_node(node), reader.pipeline_scope(scalars))
    return query


@contextlib.contextmanager
def _enter_declared_scope(function: RowFunction) -> Iterator[None]:
    """Context manager: make the functions and tables visible that were in scope at the declaration of a function."""
    with (
        reader.nested_scope(),
        _FUNCTIONS.bound(dict(function.row_functions)),
        reader.LET_FUNCTIONS_STATE.bound(dict(function.scalar_functions)),
    ):
        reader.FN_STATE.get().visible = function.tables
        yield


def _lower_function_body(
    function: RowFunction, arguments: dict[str, ir.Expr], tables: list[tuple[str, ir.Query]]
) -> ir.Query:
    for name, _ in tables:
        reader.see_tabular(name)
    scalars, locals_ = reader.lower_lets(function.body, {**function.scalars, **arguments})
    final = next(each for each in get_child_rules(function.body) if get_rule_name(each) != "LetFunctionBodyStatement")
    query: ir.Query = reader.lower_query_node(final)
    query = reader.substitute_query(query, reader.pipeline_scope(scalars))
    locals_.extend(reader.drain_pending())
    names = {name for name, _ in (*tables, *locals_)} | set(function.tables)
    query = reader.resolve_in_subqueries(query, names)
    query.lets.extend(tables)
    query.lets.extend((name, reader.resolve_in_subqueries(bound, names)) for name, bound in locals_)
    return query
