"""Support for KQL functions over series that a Python function computes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.multi_results import Reader, SeriesOutput, add_multi_result_function
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.sql import quote_text, render_expression
from emulators.kusto.series_functions import SeriesFunction

# The casts keep the type if DuckDB replaces a call with constant arguments by a null.
_CONVERSIONS = {
    "series": "kql_series(CAST({0} AS DOUBLE[]))",
    "integers": "to_json(CAST({0} AS BIGINT[]))",
    "real": "CAST({0} AS DOUBLE)",
    "long": "CAST({0} AS BIGINT)",
}


@dataclass(frozen=True)
class Argument:
    """Argument of a KQL function.

    Attributes:
        name: name of the argument in the documentation of Kusto.
        kind: ``series``, ``real``, ``int`` or ``string``.
        values: accepted values of a string.
    """

    name: str
    kind: str = "series"
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeriesCall:
    """KQL function over series that a Python function computes.

    Attributes:
        name: name of the KQL function.
        arguments: arguments of the KQL function, in order.
        required: number of arguments that must be present; the others are null if they are missing.
        function: function that computes the results.
    """

    name: str
    arguments: tuple[Argument, ...]
    required: int
    function: SeriesFunction

    @property
    def arities(self) -> Collection[int]:
        """Accepted numbers of arguments, from the required arguments to all arguments."""
        return range(self.required, len(self.arguments) + 1)

    def render(self, values: Sequence[ir.Expr]) -> str:
        """Return SQL that calls the Python function; the result is a struct with all outputs."""
        rendered = [
            _render_argument(self.name, argument, value)
            for argument, value in zip(self.arguments, values, strict=False)
        ]
        return self.function.render_call(*rendered, *["NULL"] * (len(self.arguments) - len(rendered)))

    def render_output(self, values: Sequence[ir.Expr], output: str) -> str:
        """Return SQL for one output of the Python function, as a KQL value."""
        value = f"struct_extract({self.render(values)}, {quote_text(output)})"
        return _CONVERSIONS[self.function.outputs[output]].format(value)


def add_series_scalar(call: SeriesCall, output: str) -> None:
    """Add a KQL function that returns one output of a Python function."""
    add_custom_function(call.name, call.arities, lambda node: call.render_output(node.args, output))


def add_series_multi_result(call: SeriesCall) -> None:
    """Add a KQL function that returns all outputs of a Python function, as one column each."""
    internal = f"{call.name} output"  # no query can call a function whose name contains a space
    add_custom_function(internal, range(1, 65), lambda node: _render_internal_call(call, node))
    outputs = [SeriesOutput(name) for name in call.function.outputs]
    add_multi_result_function(call.name, outputs, call.arities, _build_reader(internal))


def _render_internal_call(call: SeriesCall, node: ir.FunctionCall) -> str:
    *values, output = node.args
    assert isinstance(output, ir.Literal)  # noqa: S101  the reader adds it
    return call.render_output(values, str(output.value))


def _build_reader(internal: str) -> Reader:
    def read_output(arguments: tuple[ir.Expr, ...], output: SeriesOutput) -> ir.Expr:
        return ir.FunctionCall(internal, (*arguments, ir.Literal(output.name, "string")))

    return read_output


def _render_argument(function: str, argument: Argument, value: ir.Expr) -> str:
    return _RENDERERS[argument.kind](function, argument, value)


def _render_series(_function: str, _argument: Argument, value: ir.Expr) -> str:
    return f"kql_numbers({render_expression(value)})"


def _render_number(function: str, argument: Argument, value: ir.Expr) -> str:
    if isinstance(value, ir.Literal) and (
        isinstance(value.value, bool) or not isinstance(value.value, int | float | None)
    ):
        raise semantic_error(f"{function}(): the argument {argument.name} must be a number")
    return render_expression(value)


def _render_text(function: str, argument: Argument, value: ir.Expr) -> str:
    accepted = " or ".join(f"'{each}'" for each in argument.values)
    message = f"{function}(): the argument {argument.name} must be {accepted}"
    if isinstance(value, ir.Literal):
        if value.value not in (None, *argument.values):
            raise semantic_error(message)
        return "NULL" if value.value is None else quote_text(str(value.value))
    accepted_list = ", ".join(map(quote_text, argument.values))
    return (
        f"list_transform([CAST({render_expression(value)} AS VARCHAR)], lambda _t: CASE WHEN _t IS NULL "
        f"OR _t IN ({accepted_list}) THEN _t ELSE error({quote_text(f'kql:SEM0001:{message}')}) END)[1]"
    )


_RENDERERS: Mapping[str, Callable[[str, Argument, ir.Expr], str]] = {
    "series": _render_series,
    "real": _render_number,
    "int": _render_number,
    "string": _render_text,
}
