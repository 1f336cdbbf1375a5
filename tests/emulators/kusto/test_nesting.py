"""Texts whose binding would double with each level, and queries that do not end when they are told to."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import duckdb
import pytest

from emulators.kusto import engine as engines
from emulators.kusto.engine import Engine
from emulators.kusto.errors import QueryError
from emulators.kusto.options import RequestOptions
from emulators.kusto.translate import Translation
from emulators.kusto.translator import Translator
from tests.emulators.kusto.endpoints import Endpoint


def nested(form: str, depth: int) -> str:
    """Return an expression of so many levels."""
    expression = "x"
    for _ in range(depth):
        expression = form.format(expression)
    return expression


@pytest.mark.parametrize(
    "form", ["({} in (1, 2))", "({} !between (1 .. 2))", "todecimal({})", "(7 / {})", "make_timespan(1, toint({}))"]
)
def test_what_would_double_at_each_level_is_refused(endpoint: Endpoint, form: str) -> None:
    """A few levels are answered; so many that binding them never ended are refused before DuckDB sees them."""
    assert len(endpoint.rows(f"print x = 5 | project y = gettype({nested(form, 2)})")) == 1
    assert "EMB0003" in str(endpoint.error(f"print x = 5 | extend y = {nested(form, 40)}"))


def test_what_does_not_double_may_nest(endpoint: Endpoint) -> None:
    """Branches, calls and divisions by numbers nest as deeply as people write them."""
    for form in ("iff(x > 1, x, {})", "abs({})", "({} / 2)"):
        assert len(endpoint.rows(f"print x = 5 | extend y = {nested(form, 20)}")) == 1


def test_texts_that_take_long_to_translate_are_refused_to_each_caller(endpoint: Endpoint) -> None:
    """Callers who send the same endless text at once are all refused, and other texts are answered beside them."""
    text = f"let f = (a:long) {{ a + a + a + a }}; print x = {nested('f({})', 12).replace('x', '1')}"
    with ThreadPoolExecutor(4) as callers:
        errors = [callers.submit(endpoint.error, text) for _ in range(4)]
        assert endpoint.rows("print beside = 1") == [[1]]
        assert all("EMB0003" in str(error.result()) for error in errors)


class _Deaf:
    """Stands in for a query that DuckDB cannot be interrupted in; a real one would hold this process's cores."""

    released = threading.Event()

    def __init__(self, *_: Any) -> None:
        pass

    def run(self) -> None:
        """Go on until the test says so."""
        self.released.wait(60)

    def stop(self) -> None:
        """Take no notice."""


class _AnyText:
    async def translate(self, *_: Any) -> Translation:
        return Translation("SELECT 1", frozenset(), ())


async def test_a_query_that_never_ends_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told of the time-out at once; the process goes when the query stays long after."""
    given_up: list[object] = []

    def abandon(reason: object) -> None:
        given_up.append(reason)
        _Deaf.released.set()

    monkeypatch.setattr(engines, "_STUCK_SECONDS", 1)
    monkeypatch.setattr(engines, "Execution", _Deaf)
    monkeypatch.setattr(engines, "abandon", abandon)
    with duckdb.connect() as connection:
        engine = Engine(connection, cast("Translator", _AnyText()))
        with pytest.raises(QueryError) as raised:
            await engine.query("print 1", {}, RequestOptions(timeout_seconds=0.01))
        assert raised.value.code == "RequestExecutionTimeout"
        await asyncio.to_thread(_Deaf.released.wait, 30)
        assert len(given_up) >= 1
        await engine.close()
