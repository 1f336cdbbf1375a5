"""Translations for the engine: a bounded cache in front of translator processes that may be killed."""

import asyncio
import contextlib
import logging
import struct
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from emulators.kusto.discovery import Rows
from emulators.kusto.errors import QueryError, internal_error, too_complex
from emulators.kusto.parameters import Declaration
from emulators.kusto.translate import Translation

MAX_SECONDS = 15.0
"""Of one translation by the clock, from the moment that a process has it; the process itself counts its CPU time."""
SHORT_CHARACTERS = 8 * 1024
"""Texts up to this length have a process of their own, so that they never wait for the parse of a long one."""
SHORT_SECONDS = 0.2
"""CPU time of a text in that process, many times what people's texts take; who needs more goes on among the long."""
REMEMBERED_LATE = 128
"""Texts that took longer than ``SHORT_SECONDS``, and whether they were given up."""
CACHED = 1024
CACHED_CHARACTERS = 16_000_000

_ATTEMPTS = 2
"""The process may have died before the query came, of which the second attempt knows nothing."""
_LENGTH = struct.Struct(">I")
_MAX_REPLY = 8 * 1024 * 1024
_LOGGER = logging.getLogger(__name__)


class Translator:
    """Translates query texts over one fixed schema.

    Args:
        schema: the tables that queries may read, with their columns in order.
        types: DuckDB's type of each column that is of one type in every table that has it.
    """

    def __init__(self, schema: Mapping[str, Sequence[str]], types: Mapping[str, str]) -> None:
        self._schema = schema
        self._types = types
        self._cache: OrderedDict[str, Translation] = OrderedDict()
        self._cached_characters = 0
        self._late: OrderedDict[str, bool] = OrderedDict()
        self._short = _Process()
        self._long = _Process()
        self.hits = 0
        self.misses = 0

    async def start(self) -> None:
        """Start the processes; a query that comes before they are warm waits for them."""
        await self._short.start()
        await self._long.start()

    async def close(self) -> None:
        """End the processes."""
        await self._short.end()
        await self._long.end()

    async def translate(self, text: str, found: Sequence[Rows] = ()) -> Translation:
        """Return the translation of a query text.

        A cancelled call costs the process that works for it, which is replaced.

        Args:
            text: KQL.
            found: the rows of the probes so far.

        Raises:
            QueryError: what is wrong with the text.
        """
        key = text if not found else f"{text}\0{orjson.dumps(found).decode()}"
        cached = self._cache.get(key)
        if cached is not None:
            self._cache.move_to_end(key)
            self.hits += 1
            return cached
        self.misses += 1
        translation = await self._fresh(text, found)
        self._keep(key, translation)
        return translation

    async def _fresh(self, text: str, found: Sequence[Rows]) -> Translation:
        request = {"text": text, "schema": self._schema, "found": found, "types": self._types}
        if len(text) <= SHORT_CHARACTERS:
            async with self._short.turn:
                # Of the callers who wait with the same text, one finds out that it takes long.
                reply = {"late": True} if text in self._late else None
                reply = reply or await _asked(self._short, request | {"seconds": SHORT_SECONDS})
            if not reply.get("late"):
                return _translation(reply)
            self._remember_late(text, given_up=False)
        async with self._long.turn:
            if self._late.get(text):
                raise _too_slow()
            reply = await _asked(self._long, request)
        if reply.get("late"):
            self._remember_late(text, given_up=True)
        return _translation(reply)

    def _remember_late(self, text: str, *, given_up: bool) -> None:
        self._late[text] = self._late.get(text, False) or given_up
        if len(self._late) > REMEMBERED_LATE:
            self._late.popitem(last=False)

    def _keep(self, text: str, translation: Translation) -> None:
        self._cached_characters += _cost(text, translation) - _cost(text, self._cache.pop(text, None))
        self._cache[text] = translation
        while len(self._cache) > CACHED or self._cached_characters > CACHED_CHARACTERS:
            oldest, dropped = self._cache.popitem(last=False)
            self._cached_characters -= _cost(oldest, dropped)


def _too_slow() -> QueryError:
    return too_complex("the query takes too long to translate")


async def _asked(process: "_Process", request: Mapping[str, Any]) -> dict[str, Any]:
    for _ in range(_ATTEMPTS):
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await process.ask(request)
        except TimeoutError:
            raise _too_slow() from None
        except (OSError, asyncio.IncompleteReadError):
            _LOGGER.warning("a translator process died")
    raise too_complex("the query could not be translated within its memory and time")


class _Process:
    """One translator process, started again after a question that it did not survive."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._usable = False

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "emulators.kusto.translator_process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._usable = True

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if not self._usable or self._process is None or self._process.returncode is not None:
            await self.end()
            await self.start()
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise OSError("the translator has no pipes")
        self._usable = False
        body = orjson.dumps(request)
        self._process.stdin.write(_LENGTH.pack(len(body)) + body)
        await self._process.stdin.drain()
        (length,) = _LENGTH.unpack(await self._process.stdout.readexactly(_LENGTH.size))
        if length > _MAX_REPLY:
            raise OSError("the translator's reply is too long")
        reply: dict[str, Any] = orjson.loads(await self._process.stdout.readexactly(length))
        self._usable = True
        return reply

    async def end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None


def _translation(reply: Mapping[str, Any]) -> Translation:
    failure = reply.get("error")
    if failure is not None:
        position = failure.pop("position")
        raise QueryError(position=tuple(position) if position else None, **failure)
    if "sql" not in reply:
        raise internal_error()
    declarations = tuple(Declaration(**declaration) for declaration in reply["declarations"])
    return Translation(reply["sql"], frozenset(reply["slots"]), declarations, reply["probe"])


def _cost(text: str, translation: Translation | None) -> int:
    return 0 if translation is None else len(text) + len(translation.sql)
