"""The process that translates: its time and memory can be taken away without taking the engine with it.

A text of 150 bytes can expand to gigabytes of SQL, and a parse cannot be interrupted from another thread. So each
translator reads requests from standard input, answers on standard output, and dies of what it cannot afford.

Frames are a 4-byte big-endian length and a JSON document: ``{"text", "schema", "found", "types", "seconds"}`` in,
``{"sql", "slots", "declarations", "probe"}`` or ``{"error": {...}, "late"}`` out.
"""

import dataclasses
import logging
import resource
import signal
import struct
import sys
from typing import Any, BinaryIO

import orjson

from emulators.kusto.corrections import correct_reading
from emulators.kusto.discovery import Rows
from emulators.kusto.errors import QueryError, too_complex, untranslatable
from emulators.kusto.expansion import bound_expansion
from emulators.kusto.extensions import EXTENSIONS
from emulators.kusto.translate import Translation, translate

MEMORY_BYTES = 1024 * 1024 * 1024
CPU_SECONDS = 2.5
"""Of one translation; after these it is given up, and the process goes on."""
ORPHAN_SECONDS = 30
"""Of one translation, by the clock; the engine gives up sooner, this ends a process whose engine is gone."""

_RECURSION_LIMIT = 3000
_LENGTH = struct.Struct(">I")
_LOGGER = logging.getLogger(__name__)

# The parser builds its prediction tables as it meets the grammar: a first query would pay some 80 ms for them.
_WARM_UP = (
    "declare query_parameters(_from:datetime, n:long = 5); let T = T | where a between (_from .. now()); T "
    "| where b == 'x' and c has 'y' or d in (1, 2) | extend e = toint(f.g) | summarize count(), avg(d) by bin(a, 1h), b"
    "| join kind=inner (T | project a, b) on b | order by a asc"
)


class _OutOfTimeError(BaseException):
    """A translation has used up its time; no library's ``except Exception`` may keep it going."""


def main() -> None:
    """Serve translations until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    signal.signal(signal.SIGVTALRM, _out_of_time)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine ends this process, Ctrl-C is not for it
    correct_reading()
    bound_expansion()
    for extension in EXTENSIONS:
        extension.install()
    translate(_WARM_UP, {"T": ["a", "b", "c", "d", "f"]})
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while request := _receive(requests):
        signal.alarm(ORPHAN_SECONDS)
        seconds = request.get("seconds", CPU_SECONDS)
        reply, afford = _answer(request["text"], request["schema"], request["found"], request["types"], seconds)
        signal.alarm(0)
        replies.write(_LENGTH.pack(len(reply)) + reply)
        replies.flush()
        if not afford:
            return


def _out_of_time(_number: int, _frame: object) -> None:
    raise _OutOfTimeError


def _receive(stream: BinaryIO) -> dict[str, Any] | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    document: dict[str, Any] = orjson.loads(stream.read(_LENGTH.unpack(head)[0]))
    return document


def _answer(
    text: str, schema: dict[str, list[str]], found: list[Rows], types: dict[str, str], seconds: float = CPU_SECONDS
) -> tuple[bytes, bool]:
    """Return the reply, and whether this process can go on."""
    try:
        return _rendered(_timed(text, schema, found, types, seconds)), True
    except _OutOfTimeError:
        return _failure(too_complex("the query takes too long to translate"), late=True), True
    except QueryError as error:
        return _failure(error), True
    except MemoryError:
        return _failure(too_complex("the query expands beyond what can be translated")), False
    except Exception:  # the translator is a large library fed with hostile text; its defect ends one query
        _LOGGER.exception("a query could not be translated")
        return _failure(untranslatable()), True


def _timed(
    text: str, schema: dict[str, list[str]], found: list[Rows], types: dict[str, str], seconds: float
) -> Translation:
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return translate(text, schema, found, types)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _rendered(translation: Translation) -> bytes:
    return orjson.dumps(
        {
            "sql": translation.sql,
            "slots": sorted(translation.slots),
            "declarations": [dataclasses.asdict(declaration) for declaration in translation.declarations],
            "probe": translation.probe,
        }
    )


def _failure(error: QueryError, *, late: bool = False) -> bytes:
    return orjson.dumps({"error": error.arguments(), "late": late})


if __name__ == "__main__":
    main()
