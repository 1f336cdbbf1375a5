"""User-defined functions that return rows (``let f = (...) {...}``); each call is converted to a ``let`` statement."""

import contextlib
import dataclasses
import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from duckdb_kql import ir, lower, schema, translate
from duckdb_kql._state import State
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.names import match_arguments_to_parameters
from emulators.kusto.extensions.pipeline import unwrap_operator_node
from emulators.kusto.extensions.tree import IrNode, ParseNode, get_child_rules, get_rule_name, list_nodes_by_rule

SUPPORTED: tuple[str, ...] = (
    "let functions that return rows, with scalar and tabular parameters, called by name or with invoke",
)

macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class FunctionParameter:
    """Parameter of a user-defined function; ``default`` is None for a required parameter."""

    name: str
    tabular: bool
    default: ir.Expr | None = None


@dataclasses.dataclass(frozen=True)
class RowFunction:
    """User-defined function that returns rows, as declared by a ``let`` statement.

    Attributes:
        name: name of the function.
        parameters: parameters of the function, in order.
        body: parse tree of the function body, the text between the braces.
        scalars: values of the scalar names that were in scope at the declaration.
        tables: names of the tables that were in scope at the declaration.
        row_functions: functions that return rows and were in scope at the declaration, by name.
        scalar_functions: functions that return a scalar and were in scope at the declaration, by name.
        is_view: True if the declaration has the keyword ``view``, so that wildcards match the name.
    """

    name: str
    parameters: tuple[FunctionParameter, ...]
    body: Any
    scalars: Mapping[str, ir.Expr]
    tables: frozenset[str]
    row_functions: Mapping[str, "RowFunction"]
    scalar_functions: Mapping[str, Any]
    is_view: bool = False


_VIEW = re.compile(r"=\s*view\s*\(")
"""The keyword ``view`` in a declaration; the lexer hides it from the grammar."""
_CALL_MARK = "()#"
"""Text in the name of each internal table that represents the call of a function."""
_FUNCTIONS: State[dict[str, RowFunction]] = State("emulators.kusto.row_functions", dict)


def install_into_translator() -> None:
    """Make the KQL translator library support user-defined functions that return rows."""
    replace_attribute(lower, "_lower", _patch_query_conversion_to_isolate_functions)
    replace_attribute(lower, "_declare_let_function", _patch_function_declarations)
    replace_attribute(lower, "_declare_body_local", _patch_let_statements_inside_functions)
    replace_attribute(schema, "match_wildcard", _patch_wildcards_to_skip_function_calls)
    replace_attribute(lower, "_stored_call_source", _patch_sources_for_function_calls)
    replace_attribute(lower, "_stored_bare_source", _patch_sources_for_function_names)
    replace_attribute(translate, "_table_label", _patch_table_labels_for_functions)
    replace_attribute(lower, "_is_tabular_value", _patch_is_tabular_for_row_functions)
    replace_attribute(lower, "_lower_function_call", _patch_calls_to_reject_row_functions)
    replace_attribute(lower, "_lower_head", _patch_pipeline_conversion_for_invoke)


def _patch_query_conversion_to_isolate_functions(library_function: Callable[..., ir.Query]) -> Callable[..., ir.Query]:
    """Patch the conversion of a query text so that a query cannot call the functions that another query declares."""

    def convert_query_with_own_functions(kql_text: str, *library_arguments: Any) -> ir.Query:
        with _FUNCTIONS.bound({}):
            return library_function(kql_text, *library_arguments)

    return convert_query_with_own_functions


def _find_called_function(call_node: ParseNode) -> RowFunction | None:
    parts = get_child_rules(call_node)
    return _FUNCTIONS.get().get(parts[0].getText()) if parts else None


def _patch_sources_for_function_calls(
    library_function: Callable[[ParseNode], ir.Source | None],
) -> Callable[[ParseNode], ir.Source | None]:
    """Patch the library so that a query can read the rows of a user-defined function, as in ``f(1) | count``."""

    def find_source_of_call(node: ParseNode) -> ir.Source | None:
        function = _find_called_function(node)
        return library_function(node) if function is None else _convert_call_to_let(function, node)

    return find_source_of_call


def call_matching_views(name_pattern: str) -> list[ir.TableRef]:
    """Call all views in scope whose names match a pattern with ``*``; return references to their results.

    A view is a user-defined function that is declared with the keyword ``view``.
    """
    functions = _FUNCTIONS.get()
    names = [name for name in functions if functions[name].is_view and fnmatch.fnmatchcase(name, name_pattern)]
    return [_add_let_for_call(functions[name], {}, {}) for name in names]


def _patch_wildcards_to_skip_function_calls(library_function: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def list_tables_matching_wildcard(source: ir.WildcardTableRef, known_tables: Mapping[str, Any] | None) -> list[str]:
        """Return the tables whose names match a wildcard, without the internal tables that represent function calls."""
        tables = (
            None
            if known_tables is None
            else {name: each for name, each in known_tables.items() if _CALL_MARK not in name}
        )
        return library_function(source, tables)

    return list_tables_matching_wildcard


def _patch_table_labels_for_functions(library_function: Callable[..., str | None]) -> Callable[..., str | None]:
    """Patch the label of a table, such as in ``union withsource``: rows of a call get the name of the function."""

    def find_table_label(source: ir.TableRef, *library_arguments: Any) -> str | None:
        function, mark, _ = source.name.rpartition(_CALL_MARK)
        return function if mark else library_function(source, *library_arguments)

    return find_table_label


def _patch_sources_for_function_names(
    library_function: Callable[..., ir.Source | None],
) -> Callable[..., ir.Source | None]:
    """Patch the library so that a query can call a user-defined function by its name alone, as in ``f | count``.

    This requires that all parameters of the function have default values.
    """

    def find_source_of_name(node: ParseNode, name: str, database: str | None = None) -> ir.Source | None:
        function = _FUNCTIONS.get().get(name) if database is None else None
        if function is None or any(each.tabular or each.default is None for each in function.parameters):
            return library_function(node, name, database)
        return _add_let_for_call(function, {}, {})

    return find_source_of_name


def _patch_is_tabular_for_row_functions(library_function: Callable[..., bool]) -> Callable[..., bool]:
    """Patch the test for expressions that yield rows, so that it is also true for calls of functions in this module."""

    def is_row_function_call_or_tabular(node: ParseNode, scalars: dict[str, ir.Expr]) -> bool:
        inner = reader.unparenthesize(node)
        if get_rule_name(inner) == "NamedFunctionCallExpression" and _find_called_function(inner):
            return True
        return library_function(node, scalars)

    return is_row_function_call_or_tabular


def _patch_calls_to_reject_row_functions(
    library_function: Callable[[ParseNode], ir.Expr],
) -> Callable[[ParseNode], ir.Expr]:
    """Patch the library so that it rejects the call of a function that returns rows where a scalar is required."""

    def convert_scalar_function_call(node: ParseNode) -> ir.Expr:
        function = _find_called_function(node)
        if function is not None:
            # For `x in (f())` this error tells the library that the list is a table.
            raise _build_call_error(function, "the function returns rows and cannot be used as a scalar value")
        return library_function(node)

    return convert_scalar_function_call


def _patch_pipeline_conversion_for_invoke(
    library_function: Callable[[ParseNode, list[ParseNode]], ir.Query],
) -> Callable[[ParseNode, list[ParseNode]], ir.Query]:
    """Patch the library so that ``T | invoke f(x)`` becomes ``f(T, x)``.

    The patch only applies to functions whose body the library cannot insert into the pipeline.
    """

    def convert_pipeline_with_invoke(first_node: ParseNode, operator_nodes: list[ParseNode]) -> ir.Query:
        for index in reversed(range(len(operator_nodes))):
            function, call = _find_invoked_function_and_call(operator_nodes[index])
            if function is not None:
                rows = convert_pipeline_with_invoke(first_node, operator_nodes[:index])
                return ir.Query(
                    _convert_invoke_to_let(function, call, rows), reader.lower_operators(operator_nodes[index + 1 :])
                )
        return library_function(first_node, operator_nodes)

    return convert_pipeline_with_invoke


def _find_invoked_function_and_call(node: ParseNode) -> tuple[RowFunction | None, ParseNode | None]:
    """Return the function that an operator ``invoke`` calls, and the parse tree of the call.

    Both are None for any other operator, and if the translator library can translate the call without this module.
    """
    operator = unwrap_operator_node(node)
    calls = (
        list_nodes_by_rule(operator, "NamedFunctionCallExpression")
        if get_rule_name(operator) == "InvokeOperator"
        else []
    )
    function = _find_called_function(calls[0]) if calls else None
    if function is None or not function.parameters or not function.parameters[0].tabular:
        return None, None
    declared = reader.LET_FUNCTIONS_STATE.get().get(function.name)
    return (None, None) if declared is not None and declared.tabular is not None else (function, calls[0])


def _patch_function_declarations(
    library_function: Callable[[ParseNode, dict[str, ir.Expr]], None],
) -> Callable[[ParseNode, dict[str, ir.Expr]], None]:
    """Patch the declaration of functions so that this module stores each user-defined function that returns rows."""

    def declare_function(declaration: ParseNode, scalars: dict[str, ir.Expr]) -> None:
        function = _read_function_declaration(declaration, scalars)
        if not _returns_rows(function):
            with _remove_inner_functions_on_exit(function.name):
                library_function(declaration, scalars)
            if not function.parameters:
                # Such a function can also be called without parentheses.
                scalars[function.name] = reader.LET_FUNCTIONS_STATE.get()[function.name].body
            return
        if any(parameter.tabular for parameter in function.parameters) and not _has_call_to_column_names_of(
            declaration
        ):
            # Functions that the library can insert into a pipeline remain available for `invoke`.
            with contextlib.suppress(KqlUnsupportedError):
                library_function(declaration, scalars)
        _FUNCTIONS.get()[function.name] = function

    return declare_function


@contextlib.contextmanager
def _remove_inner_functions_on_exit(declared_name: str) -> Iterator[None]:
    """Context manager: on exit, remove all functions that were declared inside it, except ``declared_name``."""
    functions = reader.LET_FUNCTIONS_STATE.get()
    before = dict(functions)
    try:
        yield
    finally:
        declared = {declared_name: functions[declared_name]} if declared_name in functions else {}
        functions.clear()
        functions.update(before | declared)


def _patch_let_statements_inside_functions(library_function: Callable[..., None]) -> Callable[..., None]:
    """Patch ``let`` statements in function bodies so that they can declare functions that return a scalar."""

    def declare_inner_function_or_let(
        node: ParseNode,
        function_name: str,
        locals_: dict[str, ir.Expr],
        declared_names: set[str],
        scope: dict[str, ir.Expr],
    ) -> None:
        declarations = [each for part in get_child_rules(node) for each in get_child_rules(part)]
        if [get_rule_name(each) for each in declarations[:1]] != ["LetFunctionDeclaration"]:
            library_function(node, function_name, locals_, declared_names, scope)
            return
        inner = _read_function_declaration(declarations[0], {})
        if _returns_rows(dataclasses.replace(inner, scalars={**scope, **locals_})):
            raise _build_call_error(inner, "a function that another function declares must return a scalar")
        hidden = {each.name for each in inner.parameters}
        reader.declare_let_function(
            declarations[0], {name: value for name, value in locals_.items() if name not in hidden}
        )
        if not inner.parameters:
            locals_[inner.name] = reader.LET_FUNCTIONS_STATE.get()[inner.name].body

    return declare_inner_function_or_let


def _has_call_to_column_names_of(declaration: ParseNode) -> bool:
    """Return whether a function calls ``column_names_of``.

    If so, the library cannot insert the body of the function into a pipeline.
    """
    calls = list_nodes_by_rule(declaration, "NamedFunctionCallExpression")
    return any(call.getText().startswith("column_names_of(") for call in calls)


def _read_function_declaration(declaration: ParseNode, scalars: Mapping[str, ir.Expr]) -> RowFunction:
    name, *parts = get_child_rules(declaration)
    parameters = [
        each for part in parts if get_rule_name(part) == "LetFunctionParameterList" for each in get_child_rules(part)
    ]
    scope = reader.FN_STATE.get()
    return RowFunction(
        reader.find_names(name)[0],
        tuple(_read_function_parameter(each) for each in parameters),
        next(part for part in parts if get_rule_name(part) == "LetFunctionBody"),
        dict(scalars),
        scope.visible if scope else frozenset(),
        dict(_FUNCTIONS.get()),
        dict(reader.LET_FUNCTIONS_STATE.get()),
        bool(_VIEW.search(declaration.start.getInputStream().getText(declaration.start.start, parts[-1].start.start))),
    )


def _read_function_parameter(node: ParseNode) -> FunctionParameter:
    if get_rule_name(node) == "TabularParameter":
        return FunctionParameter(reader.tabular_parameter_name(node), tabular=True)
    name, default = reader.lower_let_parameter(node)
    return FunctionParameter(name, tabular=False, default=default)


def _returns_rows(function: RowFunction) -> bool:
    """Return whether a function body ends with an expression that yields rows, not a scalar."""
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


def _convert_call_to_let(function: RowFunction, call_node: ParseNode) -> ir.TableRef:
    nodes = match_arguments_to_parameters(
        function.name, [each.name for each in function.parameters], get_child_rules(call_node)[1:]
    )
    arguments = dict(zip([each.name for each in function.parameters], nodes, strict=True))
    return _add_let_for_call(function, arguments, {})


def _convert_invoke_to_let(function: RowFunction, call_node: ParseNode, piped_rows: ir.Query) -> ir.TableRef:
    first, *others = function.parameters
    nodes = match_arguments_to_parameters(function.name, [each.name for each in others], get_child_rules(call_node)[1:])
    arguments = dict(zip([each.name for each in others], nodes, strict=True))
    return _add_let_for_call(function, arguments, {first.name: piped_rows})


def _add_let_for_call(
    function: RowFunction, arguments: Mapping[str, ParseNode | None], tabular_arguments: Mapping[str, ir.Query]
) -> ir.TableRef:
    """Add a ``let`` statement that represents the call of a function; return a reference to its table.

    Args:
        function: the called function.
        arguments: parse tree of each argument by the name of its parameter; None for a missing argument.
        tabular_arguments: tabular arguments that are already converted to queries, by the name of the parameter.
    """
    scope = reader.FN_STATE.get()
    scalars: dict[str, ir.Expr] = {}
    tables: list[tuple[str, ir.Query]] = []
    for parameter in function.parameters:
        argument = arguments.get(parameter.name)
        if parameter.tabular:
            bound = tabular_arguments.get(parameter.name) or _parse_table_argument(function, argument)
            substituted = reader.substitute_query(bound, reader.pipeline_scope(scope.scalars))
            tables.append((parameter.name, _move_query_to_let(parameter.name, substituted)))
        else:
            value = _parse_scalar_argument(function, parameter, argument, scope.scalars)
            scalars[parameter.name] = _move_scalar_queries_to_let(parameter.name, value)
    later = scope.visible - function.tables
    with _enter_declaration_scope(function):
        query = _parse_function_body(function, scalars, tables)
    shadowed = writer.free_table_names(query) & later
    if shadowed:
        raise _build_call_error(
            function,
            f"the function uses the name {min(shadowed)!r}, which a later let statement declares again; rename the "
            "later declaration",
        )
    name = reader.fresh_name(function.name)
    scope.pending[-1].append((name, query))
    return ir.TableRef(name)


def _move_query_to_let(argument_name: str, query: ir.Query) -> ir.Query:
    """Put the query of an argument into a ``let`` statement; return a query that reads the statement.

    The names in the query are then resolved in the caller's scope.
    """
    fresh = reader.fresh_name(argument_name)
    reader.FN_STATE.get().pending[-1].append((fresh, query))
    return ir.Query(ir.TableRef(fresh), [])


def _move_scalar_queries_to_let(argument_name: str, value: ir.Expr) -> ir.Expr:
    """Put the ``toscalar()`` queries of the argument ``argument_name`` into ``let`` statements in the caller's scope.

    Return the argument's value with references to these statements.
    """
    done: dict[int, tuple[Any, Any]] = {}  # nodes can be shared; the original prevents that its id is used again

    def move_queries(node: IrNode) -> IrNode:
        """Return the node with its ``toscalar()`` queries moved; convert a node that occurs several times only once."""
        if id(node) not in done:
            done[id(node)] = node, move_queries_in_new_node(node)
        return done[id(node)][1]

    def move_queries_in_new_node(node: IrNode) -> IrNode:
        if isinstance(node, ir.ToScalar):
            return ir.ToScalar(_move_query_to_let(argument_name, node.query))
        if isinstance(node, tuple):
            parts = tuple(map(move_queries, node))
            return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
        if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
            return node
        fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node) if field.init}
        changed = {field: new for field, old in fields.items() if (new := move_queries(old)) is not old}
        return dataclasses.replace(node, **changed) if changed else node

    bound: ir.Expr = move_queries(value)
    return bound


def _build_call_error(function: RowFunction, reason: str) -> KqlUnsupportedError:
    return KqlUnsupportedError(f"let function:{function.name}", hint=reason)


def _parse_scalar_argument(
    function: RowFunction, parameter: FunctionParameter, node: ParseNode | None, scalars: dict[str, ir.Expr]
) -> ir.Expr:
    if node is None:
        if parameter.default is None:
            raise _build_call_error(function, f"the call lacks the argument {parameter.name!r}")
        return parameter.default
    value: ir.Expr = reader.substitute(reader.lower_expr(node), scalars)
    if reader.reads_row(value):
        raise _build_call_error(function, "an argument refers to a column; pass only constants and tables")
    return value


def _parse_table_argument(function: RowFunction, node: ParseNode | None) -> ir.Query:
    if node is None:
        raise _build_call_error(function, "the call lacks a tabular argument")
    query: ir.Query = reader.lower_query_node(node)
    return query


@contextlib.contextmanager
def _enter_declaration_scope(function: RowFunction) -> Iterator[None]:
    """Context manager: restore the functions and tables that were in scope at the declaration of a function."""
    with (
        reader.nested_scope(),
        _FUNCTIONS.bound(dict(function.row_functions)),
        reader.LET_FUNCTIONS_STATE.bound(dict(function.scalar_functions)),
    ):
        reader.FN_STATE.get().visible = function.tables
        yield


def _parse_function_body(
    function: RowFunction, arguments: dict[str, ir.Expr], named_tables: list[tuple[str, ir.Query]]
) -> ir.Query:
    for name, _ in named_tables:
        reader.see_tabular(name)
    scalars, locals_ = reader.lower_lets(function.body, {**function.scalars, **arguments})
    final = next(each for each in get_child_rules(function.body) if get_rule_name(each) != "LetFunctionBodyStatement")
    query: ir.Query = reader.lower_query_node(final)
    query = reader.substitute_query(query, reader.pipeline_scope(scalars))
    locals_.extend(reader.drain_pending())
    names = {name for name, _ in (*named_tables, *locals_)} | set(function.tables)
    query = reader.resolve_in_subqueries(query, names)
    query.lets.extend(named_tables)
    query.lets.extend((name, reader.resolve_in_subqueries(bound, names)) for name, bound in locals_)
    return query
