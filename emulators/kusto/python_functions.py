"""Functions in Python that the generated SQL calls, because SQL cannot compute their results.

DuckDB calls such a function for each row; during a call, other Python threads must wait. Therefore a function must
return within a few milliseconds, and must limit the size of its result. After the query has been stopped, no further
row is computed.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulators.kusto.library_errors import MARK
from emulators.kusto.stop_events import raise_if_stopped, select_execution

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """Function in Python that SQL can call.

    Attributes:
        name: name of the function in SQL.
        run: the function; it receives null as None, and returns None for null.
        parameters: DuckDB type of each parameter. In SQL, the number of the execution (`EXECUTION`) precedes the
            arguments, so that the function can be stopped with the query.
        result: DuckDB type of the result.
        is_constant: False if two calls with the same arguments can return different values.
    """

    name: str
    run: Callable[..., Any]
    parameters: tuple[str, ...]
    result: str
    is_constant: bool = True


class FunctionFailure(Exception):  # noqa: N818  not an error of this program
    """Failure of a Python function because of its arguments; the query then fails with this code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{MARK}{code}:{message}")


def register_python_functions(connection: "duckdb.DuckDBPyConnection", functions: Sequence[PythonFunction]) -> None:
    """Register Python functions in a database, so that SQL can call them; call this before the database is locked."""
    from duckdb.func import FunctionNullHandling  # noqa: PLC0415  translator processes do not load DuckDB

    for function in functions:
        connection.create_function(
            function.name,
            _build_stoppable_function(function),
            ["BIGINT", *function.parameters],
            function.result,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=not function.is_constant,
        )


def _build_stoppable_function(function: PythonFunction) -> Callable[..., Any]:
    def run(execution_number: int | None, *values: Any) -> Any:
        select_execution(execution_number)
        raise_if_stopped()
        return function.run(*values)

    run.__signature__ = build_positional_signature(1 + len(function.parameters))  # type: ignore[attr-defined]
    return run


def build_positional_signature(parameter_count: int) -> inspect.Signature:
    """Build the signature of a function, because DuckDB compares the number of parameters with the declared types.

    Args:
        parameter_count: number of parameters.
    """
    return inspect.Signature(
        [inspect.Parameter(f"a{index}", inspect.Parameter.POSITIONAL_ONLY) for index in range(parameter_count)]
    )
