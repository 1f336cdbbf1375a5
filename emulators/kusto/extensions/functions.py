"""``let`` functions that return rows: a call becomes a ``let`` of its own, in the scope of the declaration."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from duckdb_kql import ir, lower
from duckdb_kql._state import State
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.extensions.library import reader, replace, writer
from emulators.kusto.extensions.names import ordered_arguments
from emulators.kusto.extensions.tree import children, kind_of

SUPPORTED: tuple[str, ...] = ("let functions that return rows, with scalar and tabular parameters, called by name",)

macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a function; ``default`` is None where a value must be given."""

    name: str
    tabular: bool
    default: ir.Expr | None = None


@dataclasses.dataclass(frozen=True)
class RowFunction:
    """A declared function.

    Attributes:
        name: as it is called.
        parameters: in order.
        body: the parse tree of what stands between the braces.
        scalars: the scalar names in scope where it is declared.
        tables: the names bound to tables there.
        row_functions: the functions in scope there; itself not among them.
        scalar_functions: likewise.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: Any
    scalars: Mapping[str, ir.Expr]
    tables: frozenset[str]
    row_functions: Mapping[str, "RowFunction"]
    scalar_functions: Mapping[str, Any]


_FUNCTIONS: State[dict[str, RowFunction]] = State("emulators.kusto.row_functions", dict)


def install() -> None:
    """Teach the translator declarations and calls."""
    replace(lower, "_lower", _scoped)
    replace(lower, "_declare_let_function", _declare)
    replace(lower, "_stored_call_source", _call_source)
    replace(lower, "_is_tabular_value", _is_tabular)
    replace(lower, "_lower_function_call", _call_expression)


def _scoped(default: Callable[..., ir.Query]) -> Callable[..., ir.Query]:
    def lower_query(*args: Any) -> ir.Query:
        with _FUNCTIONS.bound({}):
            return default(*args)

    return lower_query


def _called(node: Any) -> RowFunction | None:
    parts = children(node)
    return _FUNCTIONS.get().get(parts[0].getText()) if parts else None


def _call_source(default: Callable[[Any], ir.Source | None]) -> Callable[[Any], ir.Source | None]:
    def call_source(node: Any) -> ir.Source | None:
        function = _called(node)
        return default(node) if function is None else _expand(function, node)

    return call_source


def _is_tabular(default: Callable[..., bool]) -> Callable[..., bool]:
    def is_tabular(node: Any, scalars: dict[str, ir.Expr]) -> bool:
        inner = reader.unparenthesize(node)
        if kind_of(inner) == "NamedFunctionCallExpression" and _called(inner):
            return True
        return default(node, scalars)

    return is_tabular


def _call_expression(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def call_expression(node: Any) -> ir.Expr:
        function = _called(node)
        if function is not None:
            # `x in (f())` reads the refusal as a sign that the list is a table.
            raise KqlUnsupportedError(f"let function:{function.name}", hint="it returns rows, not a value")
        return default(node)

    return call_expression


def _declare(default: Callable[[Any, dict[str, ir.Expr]], None]) -> Callable[[Any, dict[str, ir.Expr]], None]:
    def declare(decl: Any, scalars: dict[str, ir.Expr]) -> None:
        function = _declaration(decl, scalars)
        if not _returns_rows(function):
            default(decl, scalars)
            return
        if any(parameter.tabular for parameter in function.parameters):
            # What the library can splice into a pipeline stays callable with `invoke`, too.
            with contextlib.suppress(KqlUnsupportedError):
                default(decl, scalars)
        _FUNCTIONS.get()[function.name] = function

    return declare


def _declaration(decl: Any, scalars: Mapping[str, ir.Expr]) -> RowFunction:
    name, *parts = children(decl)
    parameters = [each for part in parts if kind_of(part) == "LetFunctionParameterList" for each in children(part)]
    scope = reader.FN_STATE.get()
    return RowFunction(
        reader.find_names(name)[0],
        tuple(_parameter(each) for each in parameters),
        next(part for part in parts if kind_of(part) == "LetFunctionBody"),
        dict(scalars),
        scope.visible if scope else frozenset(),
        dict(_FUNCTIONS.get()),
        dict(reader.LET_FUNCTIONS_STATE.get()),
    )


def _parameter(node: Any) -> Parameter:
    if kind_of(node) == "TabularParameter":
        return Parameter(reader.tabular_parameter_name(node), tabular=True)
    name, default = reader.lower_let_parameter(node)
    return Parameter(name, tabular=False, default=default)


def _returns_rows(function: RowFunction) -> bool:
    """Return whether the body ends in a table; a bare name may stand for either."""
    scalars = {**function.scalars, **{each.name: ir.ColumnRef(each.name) for each in function.parameters}}
    tables = {each.name for each in function.parameters if each.tabular}
    for statement in children(function.body):
        value = reader.unparenthesize(statement)
        if kind_of(statement) != "LetFunctionBodyStatement":
            name = reader.name_text(value)
            return name in tables or bool(reader.is_tabular_value(value, scalars))
        for declaration in reader.find_all(statement, "LetVariableDeclaration"):
            local, bound = children(declaration)[0], children(declaration)[-1]
            if reader.is_tabular_value(reader.collapse(bound), scalars):
                tables.update(reader.find_names(local))
            else:
                scalars.update(dict.fromkeys(reader.find_names(local), ir.Wildcard()))
    return False


def _expand(function: RowFunction, node: Any) -> ir.TableRef:
    scope = reader.FN_STATE.get()
    nodes = ordered_arguments(function.name, [each.name for each in function.parameters], children(node)[1:])
    scalars: dict[str, ir.Expr] = {}
    tables: list[tuple[str, ir.Query]] = []
    for parameter, argument in zip(function.parameters, nodes, strict=True):
        if parameter.tabular:
            tables.append((parameter.name, _table(function, argument, scope.scalars)))
        else:
            scalars[parameter.name] = _scalar(function, parameter, argument, scope.scalars)
    later = scope.visible - function.tables
    with _declared_scope(function):
        query = _body(function, scalars, tables)
    shadowed = writer.free_table_names(query) & later
    if shadowed:
        raise KqlUnsupportedError(
            f"let function:{function.name}", hint=f"{min(shadowed)!r} is bound again after the declaration"
        )
    name = reader.fresh_name(function.name)
    scope.pending[-1].append((name, query))
    return ir.TableRef(name)


def _scalar(function: RowFunction, parameter: Parameter, node: Any, scalars: dict[str, ir.Expr]) -> ir.Expr:
    if node is None:
        if parameter.default is None:
            raise KqlUnsupportedError(f"let function:{function.name}", hint=f"{parameter.name!r} has no value")
        return parameter.default
    value: ir.Expr = reader.substitute(reader.lower_expr(node), scalars)
    if reader.reads_row(value):
        raise KqlUnsupportedError(
            f"let function:{function.name}", hint="an argument reads a column of the caller's row"
        )
    return value


def _table(function: RowFunction, node: Any, scalars: dict[str, ir.Expr]) -> ir.Query:
    if node is None:
        raise KqlUnsupportedError(f"let function:{function.name}", hint="a table is expected")
    query: ir.Query = reader.substitute_query(reader.lower_query_node(node), reader.pipeline_scope(scalars))
    return query


@contextlib.contextmanager
def _declared_scope(function: RowFunction) -> Iterator[None]:
    """Put back the functions and tables that the declaration saw."""
    with (
        reader.nested_scope(),
        _FUNCTIONS.bound(dict(function.row_functions)),
        reader.LET_FUNCTIONS_STATE.bound(dict(function.scalar_functions)),
    ):
        reader.FN_STATE.get().visible = function.tables
        yield


def _body(function: RowFunction, arguments: dict[str, ir.Expr], tables: list[tuple[str, ir.Query]]) -> ir.Query:
    for name, _ in tables:
        reader.see_tabular(name)
    scalars, locals_ = reader.lower_lets(function.body, {**function.scalars, **arguments})
    final = next(each for each in children(function.body) if kind_of(each) != "LetFunctionBodyStatement")
    query: ir.Query = reader.lower_query_node(final)
    query = reader.substitute_query(query, reader.pipeline_scope(scalars))
    locals_.extend(reader.drain_pending())
    names = {name for name, _ in (*tables, *locals_)} | set(function.tables)
    query = reader.resolve_in_subqueries(query, names)
    query.lets.extend(tables)
    query.lets.extend((name, reader.resolve_in_subqueries(bound, names)) for name, bound in locals_)
    return query
