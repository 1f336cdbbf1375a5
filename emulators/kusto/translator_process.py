"""Separate process that translates KQL queries, so that its time and memory can be limited.

A text of 150 bytes can expand to gigabytes of SQL, and the parser cannot be interrupted from another thread. The
process reads requests from standard input and writes replies to standard output. A request that exceeds the memory
limit ends the process. The engine starts the first translator process by a fork, so that it need not import the
translator library again, which takes most of the processor time of a start.

A message is a 4-byte big-endian length and a JSON document: ``{"text", "schema", "found", "types", "place",
"seconds"}`` as the request, and a `Translation` or ``{"error": {...}, "late"}`` as the reply. ``found`` contains the
rows of discovery queries, ``place`` the position of the requested result (see `translate`), and ``seconds`` the limit
of CPU time. The property ``late`` is true if the translation exceeded this limit.
"""

import dataclasses
import logging
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple, NoReturn

import orjson
from duckdb_kql import ir, lower
from duckdb_kql import translate as rendering

from emulators.kusto.errors import QueryError, too_complex_error, unresolved_name_error, untranslatable_error
from emulators.kusto.extensions import EXTENSIONS
from emulators.kusto.query_checks import install_sql_length_check
from emulators.kusto.statements import ResultPlace
from emulators.kusto.string_literals import parse_string_literal
from emulators.kusto.translate import Translation, translate

MEMORY_BYTES = 1024 * 1024 * 1024
CPU_SECONDS = 2.5
"""CPU time limit of one translation; the process continues with the next request."""
ORPHAN_SECONDS = 30
"""Time limit of one translation. The engine stops waiting earlier; the limit ends a process whose engine has ended."""

_RECURSION_LIMIT = 3000
_STANDARD_INPUT, _STANDARD_OUTPUT = 0, 1
_LENGTH = struct.Struct(">I")
_LOGGER = logging.getLogger(__name__)

# The parser builds its prediction tables lazily; without this query the first request would take 80 ms longer.
_WARM_UP = (
    "declare query_parameters(_from:datetime, n:long = 5); let T = T | where a between (_from .. now()); T "
    "| where b == 'x' and c has 'y' or d in (1, 2) | extend e = toint(f.g) | summarize count(), avg(d) by bin(a, 1h), b"
    "| join kind=inner (T | project a, b) on b | order by a asc"
)


class _OutOfTimeError(BaseException):
    """The translation exceeded its CPU time. This is a BaseException, so that no ``except Exception`` hides it."""


@dataclasses.dataclass(frozen=True, slots=True)
class ForkedTranslator:
    """Translator process that was forked from this process.

    Attributes:
        pid: process id.
        connection: socket to which requests are written and from which replies are read.
    """

    pid: int
    connection: socket.socket


class _Reply(NamedTuple):
    """Encoded reply to a request, and whether this process can accept further requests."""

    body: bytes
    is_process_reusable: bool = True


def fork_translator() -> ForkedTranslator | None:
    """Fork a translator process.

    Call this while the process has one thread, before DuckDB, NumPy and Arrow are loaded.

    Returns:
        the process; None if the system is not Linux, because libraries of other systems may have started threads.
    """
    if sys.platform != "linux":
        return None
    connection, process_connection = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        connection.close()
        _run_forked_process(process_connection.detach())
    process_connection.close()
    return ForkedTranslator(pid, connection)


def _run_forked_process(socket_descriptor: int) -> NoReturn:
    """Reply to the translation requests from a socket, then end this process.

    The socket replaces standard input and output. Otherwise this process would keep the pipes of the engine open after
    the end of the engine.
    """
    status = 1
    try:
        for descriptor in (_STANDARD_INPUT, _STANDARD_OUTPUT):
            os.dup2(socket_descriptor, descriptor)
        if socket_descriptor > _STANDARD_OUTPUT:
            os.close(socket_descriptor)
        with open(_STANDARD_INPUT, "rb") as requests, open(_STANDARD_OUTPUT, "wb") as replies:
            _reply_to_requests(requests, replies)
        status = 0
    except Exception:
        _LOGGER.exception("the translator process failed")
    finally:
        os._exit(status)


def main() -> None:
    """Reply to translation requests until standard input ends."""
    _reply_to_requests(sys.stdin.buffer, sys.stdout.buffer)


def _reply_to_requests(requests: BinaryIO, replies: BinaryIO) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    signal.signal(signal.SIGVTALRM, _raise_out_of_time)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine ends this process; Ctrl-C must not
    patch_translator_library()
    install_sql_length_check()
    for extension in EXTENSIONS:
        extension.install_into_translator()
    translate(_WARM_UP, {"T": ["a", "b", "c", "d", "f"]})
    while request := _read_next_request_if_any(requests):
        signal.alarm(ORPHAN_SECONDS)
        reply, is_process_reusable = _build_reply(request)
        signal.alarm(0)
        replies.write(_LENGTH.pack(len(reply)) + reply)
        replies.flush()
        if not is_process_reusable:
            return


def _raise_out_of_time(_number: int, _frame: object) -> None:
    raise _OutOfTimeError


def _read_next_request_if_any(stream: BinaryIO) -> dict[str, Any] | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    document: dict[str, Any] = orjson.loads(stream.read(_LENGTH.unpack(head)[0]))
    return document


def _build_reply(request: Mapping[str, Any]) -> _Reply:
    """Translate a KQL text, or build the reply with the error."""
    try:
        return _Reply(_encode_reply(_translate_with_time_limit(request)))
    except _OutOfTimeError:
        return _Reply(_encode_error_reply(too_complex_error("the query takes too long to translate"), is_late=True))
    except QueryError as error:
        return _Reply(_encode_error_reply(error))
    except MemoryError:
        out_of_memory = too_complex_error("the query is too complex; its translation exceeds the memory limit")
        return _Reply(_encode_error_reply(out_of_memory), is_process_reusable=False)
    except Exception:  # the library parses hostile text; a defect must fail only this query
        _LOGGER.exception("a query could not be translated")
        return _Reply(_encode_error_reply(untranslatable_error()))


def _translate_with_time_limit(request: Mapping[str, Any]) -> Translation:
    signal.setitimer(signal.ITIMER_VIRTUAL, request.get("seconds", CPU_SECONDS))
    try:
        place = ResultPlace(*request["place"])
        return translate(request["text"], request["schema"], request["found"], request["types"], place)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _encode_reply(translation: Translation) -> bytes:
    # A frozenset is not JSON.
    return orjson.dumps(dataclasses.asdict(translation) | {"slots": sorted(translation.slots)})


def _encode_error_reply(error: QueryError, *, is_late: bool = False) -> bytes:
    return orjson.dumps({"error": error.to_constructor_arguments(), "late": is_late})


def patch_translator_library() -> None:
    """Patch the translator library where it differs from Data Explorer; call this once in each translator process.

    The patches concern string literals, tables in parentheses, and unknown columns in ``project-rename``.
    """
    lower._string_value = parse_string_literal  # noqa: SLF001  the library has no hook for this
    lower._lower_head = _patch_pipelines_for_parenthesized_sources(lower._lower_head)  # noqa: SLF001
    rendering.render_operator = _patch_project_rename_to_check_columns(rendering.render_operator)


def _patch_pipelines_for_parenthesized_sources(library_function: Callable[..., ir.Query]) -> Callable[..., ir.Query]:
    def convert_pipeline(first_node: Any, operator_nodes: list[Any]) -> ir.Query:
        inner = lower._unparenthesize(first_node)  # noqa: SLF001
        if lower._cls(inner) == "PipeExpression":  # noqa: SLF001
            first, *piped = lower._rule_children(inner)  # noqa: SLF001
            return convert_pipeline(first, [*piped, *operator_nodes])
        return library_function(inner, operator_nodes)

    return convert_pipeline


def _patch_project_rename_to_check_columns(library_function: Callable[..., str]) -> Callable[..., str]:
    def render_operator(op: ir.Operator, input_sql: str, input_columns: list[str] | None = None) -> str:
        if isinstance(op, ir.ProjectRename) and input_columns is not None:
            for old, _ in op.renames:
                if old not in input_columns:
                    raise unresolved_name_error(old)
        return library_function(op, input_sql, input_columns)

    return render_operator


if __name__ == "__main__":
    main()
