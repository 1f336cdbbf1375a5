"""KQL functions that return several results (outputs), such as ``series_stats``.

``(a, b) = f(x)`` names the results in ``extend``, ``project`` and ``print``. Without names, each result has the name
``f_x_result``. If a query names only some of the results, ``print`` returns only these; ``extend`` and ``project``
return all results.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from duckdb_kql import ir, lower
from duckdb_kql.errors import KqlError
from duckdb_kql.translate import naming

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import replace_attribute
from emulators.kusto.extensions.names import MULTI_RESULT_FUNCTIONS
from emulators.kusto.extensions.pipeline import OperatorParser
from emulators.kusto.extensions.tree import ParseNode

_FUNCTIONS: dict[str, "_MultiResultFunction"] = {}


@dataclasses.dataclass(frozen=True)
class SeriesOutput:
    """One output of a KQL function with several outputs.

    Attributes:
        name: end of the default column name, and name of the property in the JSON object that contains all outputs.
        conversion: KQL function that converts the property to a scalar; empty if the output remains dynamic.
    """

    name: str
    conversion: str = ""


type OutputExpressionBuilder = Callable[[tuple[ir.Expr, ...], SeriesOutput], ir.Expr]
"""Function that returns an expression for one output, from the arguments of the call.

The expressions of all outputs must contain the same call, which DuckDB then computes once.
"""


@dataclasses.dataclass(frozen=True)
class _MultiResultFunction:
    """KQL function with several outputs, as `add_multi_result_function` registered it."""

    outputs: tuple[SeriesOutput, ...]
    arities: Collection[int]
    build_output_expression: OutputExpressionBuilder


@dataclasses.dataclass(frozen=True)
class SeriesOutputExpr(ir.NamedExpr):
    """Expression for an output that the query names, such as ``a`` in ``(a, b) = f(x)``.

    Attributes:
        call: call of the function that has the output; never None.
        last: -1, except for the last output that the query names: then the index of this output. The outputs after it
            get generated names.
    """

    call: ir.FunctionCall | None = None
    last: int = -1


def add_multi_result_function(
    function_name: str,
    outputs: Sequence[SeriesOutput],
    argument_counts: Collection[int],
    build_output_expression: OutputExpressionBuilder,
) -> None:
    """Add a KQL function with several outputs.

    Args:
        function_name: name of the function in KQL.
        outputs: outputs of the function, in order.
        argument_counts: accepted numbers of arguments.
        build_output_expression: returns the expression for an output (see `build_output_builder_for_bag_function`).
    """
    _FUNCTIONS[function_name] = _MultiResultFunction(tuple(outputs), argument_counts, build_output_expression)
    MULTI_RESULT_FUNCTIONS[function_name] = lambda named: list(_build_expressions_of_named_outputs(named, named.names))


def build_output_builder_for_bag_function(bag_function: str) -> OutputExpressionBuilder:
    """Return an expression builder for outputs that the KQL function ``bag_function`` returns in one JSON object.

    The expression for an output calls ``bag_function`` and reads the property of this output from the object.
    """

    def build_output_expression(arguments: tuple[ir.Expr, ...], output: SeriesOutput) -> ir.Expr:
        value = ir.PathAccess(ir.FunctionCall(bag_function, arguments), (ir.PathStep(output.name),))
        return ir.FunctionCall(output.conversion, (value,)) if output.conversion else value

    return build_output_expression


def install_multi_result_functions() -> None:
    """Make ``extend``, ``project`` and ``print`` create one column for each output of a multi-output function."""
    replace_attribute(lower, "_lower_operator", _patch_operators_for_multi_results)
    replace_attribute(lower, "_lower_source", _patch_print_for_multi_results)


def _patch_operators_for_multi_results(library_function: OperatorParser) -> OperatorParser:
    def convert_operator(node: ParseNode) -> ir.Operator | list[ir.Operator] | None:
        op = library_function(node)
        if isinstance(op, ir.Extend | ir.Project):
            return dataclasses.replace(
                op, expressions=_expand_multi_result_calls(op.expressions, include_unnamed_outputs=True)
            )
        return op

    return convert_operator


def _patch_print_for_multi_results(
    library_function: Callable[[ParseNode], ir.Source],
) -> Callable[[ParseNode], ir.Source]:
    def convert_source(node: ParseNode) -> ir.Source:
        source = library_function(node)
        if isinstance(source, ir.PrintSource):
            return dataclasses.replace(
                source, expressions=_expand_multi_result_calls(source.expressions, include_unnamed_outputs=False)
            )
        return source

    return convert_source


@dataclasses.dataclass(frozen=True)
class GeneratedName(ir.NamedExpr):
    """Output of a multi-output function whose column name is generated, because the query does not name it."""


def make_generated_names_unique(expressions: Iterable[ir.NamedExpr]) -> tuple[ir.NamedExpr, ...]:
    """Append a number to each generated name that already occurs among the expressions of an operator."""
    listed = list(expressions)
    taken = {each.name for each in listed if not isinstance(each, GeneratedName)}
    named: list[ir.NamedExpr] = []
    for each in listed:
        name = each.name or ""
        if isinstance(each, GeneratedName):
            numbered = (f"{name}{number or ''}" for number in itertools.count())
            name = next(candidate for candidate in numbered if candidate not in taken)
            taken.add(name)
            named.append(ir.NamedExpr(each.expr, name))
        else:
            named.append(each)
    return tuple(named)


def _expand_multi_result_calls(
    expressions: Sequence[ir.NamedExpr], *, include_unnamed_outputs: bool
) -> tuple[ir.NamedExpr, ...]:
    """Replace each call of a function with several outputs by one expression for each output.

    Outputs that the query does not name get unique generated names. If the query names some outputs of a call, the
    unnamed ones are omitted unless ``include_unnamed_outputs``.
    """
    return make_generated_names_unique(
        _iterate_result_expressions(expressions, include_unnamed_outputs=include_unnamed_outputs)
    )


def _iterate_result_expressions(
    expressions: Sequence[ir.NamedExpr], *, include_unnamed_outputs: bool
) -> Iterator[ir.NamedExpr]:
    """Yield all expressions of an operator; replace each call with several outputs by expressions for its outputs."""
    for named in expressions:
        call = named.expr
        if isinstance(call, ir.FunctionCall) and call.name.lower() in _FUNCTIONS:
            names = (named.name,) if named.name else ()
            yield from _iterate_named_and_unnamed_results(
                _build_expressions_of_named_outputs(named, names),
                include_unnamed_outputs=include_unnamed_outputs or not names,
                call=call,
            )
        elif isinstance(named, SeriesOutputExpr):
            yield from _iterate_named_and_unnamed_results(
                iter([named]), include_unnamed_outputs=include_unnamed_outputs and named.last >= 0, call=named.call
            )
        else:
            yield named


def _iterate_named_and_unnamed_results(
    named: Iterator["SeriesOutputExpr"], *, include_unnamed_outputs: bool, call: ir.FunctionCall | None
) -> Iterator[ir.NamedExpr]:
    """Yield the outputs of a call that the query names, then the outputs after them with generated names.

    The outputs with generated names are omitted if ``include_unnamed_outputs`` is False or ``call`` is None.
    """
    last = -1
    for each in named:
        last = each.last
        yield ir.NamedExpr(each.expr, each.name)
    if not include_unnamed_outputs or call is None:
        return
    function = _get_multi_result_function(call)
    for output in function.outputs[last + 1 :]:
        name = f"{call.name}_{_infer_column_name_of_first_argument(call)}_{output.name}"
        yield GeneratedName(function.build_output_expression(call.args, output), name)


def _infer_column_name_of_first_argument(call: ir.FunctionCall) -> str:
    """Return the default column name of a call's first argument; empty if the argument has no default name."""
    try:
        return (naming.expression_name(call.args[0]) or "") if call.args else ""
    except KqlError:
        return ""  # Data Explorer gives such a column a random name


def _build_expressions_of_named_outputs(
    named_call: ir.NamedExpr, output_names: Sequence[str]
) -> Iterator[SeriesOutputExpr]:
    """Yield one expression for each output of a call that the query names, as in ``(a, b) = f(x)``.

    ``output_names`` are the names of the first outputs of the call. Only the last expression has the index of its
    output as attribute ``last``; the others have -1.

    Raises:
        QueryError: the call has fewer outputs than names.
    """
    call = named_call.expr
    assert isinstance(call, ir.FunctionCall)  # noqa: S101  the callers check it
    function = _get_multi_result_function(call)
    if len(output_names) > len(function.outputs):
        raise unsupported_error(
            "more names on the left of = than results", f"{call.name}() has {len(function.outputs)} results"
        )
    for index, (name, output) in enumerate(zip(output_names, function.outputs, strict=False)):
        last = index if index + 1 == len(output_names) else -1
        yield SeriesOutputExpr(function.build_output_expression(call.args, output), name, call, last)


def _get_multi_result_function(call: ir.FunctionCall) -> _MultiResultFunction:
    function = _FUNCTIONS[call.name.lower()]
    if len(call.args) not in function.arities:
        counts = " or ".join(map(str, sorted(function.arities)))
        raise unsupported_error(f"{call.name}() with {len(call.args)} arguments", f"it accepts {counts} arguments")
    return function
