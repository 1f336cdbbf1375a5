"""Translator of KQL queries, with a cache of translations and one process each for short and long query texts."""

import asyncio
import contextlib
import logging
import os
import signal
import struct
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from emulators.kusto.discovery import Rows
from emulators.kusto.errors import QueryError, internal_error, too_complex_error
from emulators.kusto.parameters import Declaration
from emulators.kusto.statements import FIRST_RESULT, ResultPlace
from emulators.kusto.translate import Translation
from emulators.kusto.translator_process import ForkedTranslator

MAX_SECONDS = 15.0
"""Time limit of one translation in a process; the process itself limits the CPU time."""
SHORT_CHARACTERS = 8 * 1024
"""Maximum length of a short KQL text; short texts have a separate process, so that they never wait for long texts."""
SHORT_SECONDS = 0.2
"""CPU time limit in the process for short texts; slower texts move to the process for long texts."""
MAX_SLOW_TEXTS = 128
"""Number of KQL texts that are remembered because their translation took longer than ``SHORT_SECONDS``."""
MAX_CACHED_TRANSLATIONS = 1024
MAX_CACHED_CHARACTERS = 16_000_000

_ATTEMPTS = 2
"""Number of attempts to translate a text; the first fails if the process has ended since the last request."""
_LENGTH = struct.Struct(">I")
_MAX_REPLY = 8 * 1024 * 1024
_LOGGER = logging.getLogger(__name__)


class Translator:
    """Translates KQL queries to SQL for a fixed set of tables, in processes that can be killed.

    Args:
        schema: columns, in order, of each table that queries may read.
        types: DuckDB type by column name; only columns that have the same type in all tables.
        forked: first process for short texts; None to start a new process.
    """

    def __init__(
        self,
        columns_by_table: Mapping[str, Sequence[str]],
        type_by_column: Mapping[str, str],
        *,
        forked: ForkedTranslator | None = None,
    ) -> None:
        self._schema = columns_by_table
        self._types = type_by_column
        self._cache: OrderedDict[str, Translation] = OrderedDict()
        self._cached_characters = 0
        self._slow: OrderedDict[str, bool] = OrderedDict()
        self._short = _TranslatorProcess(forked)
        self._long = _TranslatorProcess()
        self.hits = 0
        self.misses = 0

    async def start(self) -> None:
        """Start the process for short texts; the process for long texts starts when a query requires it."""
        await self._short.start()

    async def close(self) -> None:
        """Kill the translator processes."""
        await self._short.kill_process()
        await self._long.kill_process()

    async def translate(
        self, kql_text: str, discovery_rows: Sequence[Rows] = (), result_place: ResultPlace = FIRST_RESULT
    ) -> Translation:
        """Translate a KQL text, or return its cached translation.

        If the call is cancelled, the process that is translating the text is replaced.

        Args:
            kql_text: KQL text of the query.
            discovery_rows: rows of the discovery queries that have run to find output columns (see
                ``emulators.kusto.discovery``).
            result_place: the result to translate, if the query has several.

        Raises:
            QueryError: the text cannot be translated.
        """
        further = [discovery_rows, result_place] if discovery_rows or result_place != FIRST_RESULT else []
        key = f"{kql_text}\0{orjson.dumps(further).decode()}" if further else kql_text
        cached = self._cache.get(key)
        if cached is not None:
            self._cache.move_to_end(key)
            self.hits += 1
            return cached
        self.misses += 1
        translation = await self._translate_in_translator_process(kql_text, discovery_rows, result_place)
        self._store_translation(key, translation)
        return translation

    async def _translate_in_translator_process(
        self, kql_text: str, discovery_rows: Sequence[Rows], result_place: ResultPlace
    ) -> Translation:
        request: dict[str, Any] = {
            "text": kql_text,
            "schema": self._schema,
            "found": discovery_rows,
            "types": self._types,
        }
        request["place"] = [result_place.statement, result_place.part]
        if len(kql_text) <= SHORT_CHARACTERS:
            async with self._short.lock:
                # If several callers wait with the same slow text, only the first tries it in this process.
                reply = {"late": True} if kql_text in self._slow else None
                reply = reply or await _request_translation(self._short, request | {"seconds": SHORT_SECONDS})
            if not reply.get("late"):
                return _to_translation(reply)
            self._record_slow_query_text(kql_text, timed_out=False)
        async with self._long.lock:
            if self._slow.get(kql_text):
                raise _build_too_slow_error()
            reply = await _request_translation(self._long, request)
        if reply.get("late"):
            self._record_slow_query_text(kql_text, timed_out=True)
        return _to_translation(reply)

    def _record_slow_query_text(self, kql_text: str, *, timed_out: bool) -> None:
        self._slow[kql_text] = self._slow.get(kql_text, False) or timed_out
        if len(self._slow) > MAX_SLOW_TEXTS:
            self._slow.popitem(last=False)

    def _store_translation(self, kql_text: str, translation: Translation) -> None:
        self._cached_characters += _count_cached_characters(kql_text, translation) - _count_cached_characters(
            kql_text, self._cache.pop(kql_text, None)
        )
        self._cache[kql_text] = translation
        while len(self._cache) > MAX_CACHED_TRANSLATIONS or self._cached_characters > MAX_CACHED_CHARACTERS:
            oldest, dropped = self._cache.popitem(last=False)
            self._cached_characters -= _count_cached_characters(oldest, dropped)


def _build_too_slow_error() -> QueryError:
    return too_complex_error("the query takes too long to translate")


async def _request_translation(process: "_TranslatorProcess", request: Mapping[str, Any]) -> dict[str, Any]:
    for _ in range(_ATTEMPTS):
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await process.send_request(request)
        except TimeoutError:
            raise _build_too_slow_error() from None
        except (OSError, asyncio.IncompleteReadError):
            _LOGGER.warning("a translator process ended unexpectedly")
    raise too_complex_error("the query could not be translated within the limits of memory and time; simplify it")


class _TranslatorProcess:
    """Process that translates one KQL text at a time; if a request ends the process, the next request restarts it."""

    def __init__(self, forked: ForkedTranslator | None = None) -> None:
        self.lock = asyncio.Lock()
        self._forked = forked
        self._process: asyncio.subprocess.Process | None = None
        self._requests: asyncio.StreamWriter | None = None
        self._replies: asyncio.StreamReader | None = None
        self._usable = False

    async def start(self) -> None:
        if self._forked is not None:
            self._replies, self._requests = await asyncio.open_unix_connection(sock=self._forked.connection)
        else:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "emulators.kusto.translator_process",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            self._replies, self._requests = self._process.stdout, self._process.stdin
        self._usable = True

    async def send_request(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if not self._usable or self._replies is None or self._replies.at_eof():
            await self.kill_process()
            await self.start()
        if self._requests is None or self._replies is None:
            raise OSError("the KQL translator process has no standard input or output")
        self._usable = False
        body = orjson.dumps(message)
        self._requests.write(_LENGTH.pack(len(body)) + body)
        await self._requests.drain()
        (length,) = _LENGTH.unpack(await self._replies.readexactly(_LENGTH.size))
        if length > _MAX_REPLY:
            raise OSError("the reply of the KQL translator process is too long")
        reply: dict[str, Any] = orjson.loads(await self._replies.readexactly(length))
        self._usable = True
        return reply

    async def kill_process(self) -> None:
        if self._forked is not None:
            forked, self._forked = self._forked, None
            os.kill(forked.pid, signal.SIGKILL)
            if self._requests is not None:
                self._requests.close()
            forked.connection.close()
            await asyncio.to_thread(os.waitpid, forked.pid, 0)
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None


def _to_translation(reply: Mapping[str, Any]) -> Translation:
    failure = reply.get("error")
    if failure is not None:
        position = failure.pop("position")
        raise QueryError(position=tuple(position) if position else None, **failure)
    if "sql" not in reply:
        raise internal_error()
    declarations = tuple(Declaration(**declaration) for declaration in reply["declarations"])
    return Translation(
        **{
            **reply,
            "slots": frozenset(reply["slots"]),
            "declarations": declarations,
            "approximations": tuple(reply["approximations"]),
        }
    )


def _count_cached_characters(text: str, translation: Translation | None) -> int:
    return 0 if translation is None else len(text) + len(translation.sql)
