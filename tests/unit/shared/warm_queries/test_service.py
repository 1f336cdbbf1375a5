"""Running queries: what reaches the engine and what comes back."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now, parse_rfc3339
from shared.warm_queries.ports import Column, EngineQuery, EngineResult
from shared.warm_queries.service import WarmQueries

APPROVAL = {"approvedBy": "admin@x", "approvedAt": "2026-01-05T08:00:00Z"}


class Engine:
    """Keeps what it was asked and answers with fixed rows; the real one is tested over its socket."""

    def __init__(self, rows: list[list[Any]]) -> None:
        self.rows = rows
        self.asked: list[EngineQuery] = []

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Answer."""
        self.asked.append(query)
        return EngineResult((Column("t", "datetime"), Column("v", "real")), self.rows[: query.max_records], 1.25)

    async def ping(self) -> None:
        """Be there."""


def query(lookup: str, **more: Any) -> CatalogEntry[WarmQuery]:
    """Return a stored query."""
    given = {"lookup": lookup, "name": lookup.title(), "surface": "s", "kql": "Telemetry | count", **more}
    return CatalogEntry(WarmQuery.model_validate(given), now(), now(), "editor@x")


def service(engine: Engine) -> WarmQueries:
    """Return the service over three queries."""
    parameters = [{"name": "device", "type": "string", "default": ""}, {"name": "n", "type": "long"}]
    queries = {
        "plain": query("plain", approval=APPROVAL, apiPath="area/plain"),
        "draft": query("draft"),
        "typed": query("typed", approval=APPROVAL, parameters=parameters),
        "outside": query("outside", approval=APPROVAL, kql="cluster('x').database('y').T"),
    }

    async def catalog() -> Catalog:
        return Catalog(queries=queries)

    return WarmQueries(catalog, engine, 30)


ROWS = [[f"2026-01-01T00:00:0{second}Z", float(second)] for second in range(5)]


async def execute(engine: Engine, lookup: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """Run a query with usual settings."""
    return await service(engine).execute(lookup, more.get("time_range"), more.get("limit", 1000), arguments or {})


async def refusal(lookup: str, arguments: Mapping[str, Any] | None = None) -> WorkspaceError:
    """Return the error that an execution raises, which must not reach the engine."""
    engine = Engine(ROWS)
    with pytest.raises(WorkspaceError) as refused:
        await execute(engine, lookup, arguments)
    assert engine.asked == []
    return refused.value


@pytest.mark.parametrize("lookup", ["plain", "area/plain"])
async def test_a_query_is_found_by_lookup_and_by_api_path(lookup: str) -> None:
    """Both names lead to the same answer, with its governance."""
    run = await execute(Engine(ROWS), lookup)
    assert (run.query, run.truncated, len(run.rows)) == ("Plain", False, 5)
    assert run.rows[1] == {"t": "2026-01-01T00:00:01.000000Z", "v": 1.0}
    assert run.approval is not None
    assert run.approval.approved_by == "admin@x"


@pytest.mark.parametrize("lookup", ["nothing", "Plain", "area/plain/", "area"])
async def test_an_unknown_lookup_is_not_found(lookup: str) -> None:
    """Lookups are case-sensitive and whole."""
    assert (await refusal(lookup)).code == "WARM_QUERY_NOT_FOUND"


async def test_a_draft_does_not_run() -> None:
    """What nobody approved is refused, before its parameters are looked at."""
    error = await refusal("draft", {"unknown": "1"})
    assert (error.kind, error.code) == (Kind.FORBIDDEN, "QUERY_NOT_APPROVED")


async def test_one_row_more_than_the_limit_means_truncated() -> None:
    """The engine is asked for one row more; the caller never gets it."""
    engine = Engine(ROWS)
    run = await execute(engine, "plain", limit=4)
    assert (len(run.rows), run.truncated, engine.asked[0].max_records) == (4, True, 5)
    assert not (await execute(Engine(ROWS), "plain", limit=5)).truncated


async def test_the_window_ends_now_and_is_bound_not_pasted() -> None:
    """A timeRange becomes two bound parameters around a filter before the query."""
    engine = Engine(ROWS)
    run = await execute(engine, "plain", time_range=timedelta(hours=2))
    [asked] = engine.asked
    assert asked.text.endswith("\nTelemetry | count")
    assert "between (_oi_from .. _oi_to)" in asked.text
    start, end = (parse_rfc3339(asked.parameters[name][9:-1]) for name in ("_oi_from", "_oi_to"))
    assert (end - start, end) == (timedelta(hours=2), run.executed_at)


async def test_declared_parameters_are_typed_and_defaulted() -> None:
    """Every declared parameter travels as a literal, given or by default, and never in the text."""
    engine = Engine(ROWS)
    hostile = 'x" or true | project Payload //'
    await execute(engine, "typed", {"n": "42", "device": hostile})
    assert engine.asked[0].parameters == {"n": "long(42)", "device": hostile}
    assert hostile not in engine.asked[0].text
    await execute(engine, "typed", {"n": 42})
    assert engine.asked[1].parameters == {"n": "long(42)", "device": ""}


async def test_all_failing_parameters_are_named() -> None:
    """Missing, ill-typed and unknown parameters are listed together."""
    error = await refusal("typed", {"device": 5, "other": "x"})
    assert [failing["field"] for failing in error.members["errors"]] == ["p.other", "p.device", "p.n"]  # type: ignore[attr-defined]


async def test_a_query_that_allows_it_is_worked_out_once() -> None:
    """Within its cacheSeconds the same call gets the first answer with its time; other arguments get their own."""
    engine = Engine(ROWS)
    queries = {
        "kept": query("kept", approval=APPROVAL, cacheSeconds=60, parameters=[{"name": "n", "type": "long"}]),
    }

    async def catalog() -> Catalog:
        return Catalog(queries=queries)

    warm = WarmQueries(catalog, engine, 30)
    first = await warm.execute("kept", timedelta(hours=1), 10, {"n": 1})
    again = await warm.execute("kept", timedelta(hours=1), 10, {"n": "1"})
    other = await warm.execute("kept", timedelta(hours=1), 10, {"n": 2})
    assert (first.from_cache, again.from_cache, other.from_cache) == (False, True, False)
    assert (again.executed_at, again.rows) == (first.executed_at, first.rows)
    assert len(engine.asked) == 2
    assert parse_rfc3339(engine.asked[0].parameters["_oi_to"][9:-1]) == first.executed_at
    plain = await warm.execute("kept", None, 10, {"n": 1})
    assert plain.from_cache is False
    assert [asked.cache_seconds for asked in engine.asked] == [0, 0, 60]


async def test_a_changed_query_does_not_give_its_old_answer() -> None:
    """What was kept belongs to the query as it was approved."""
    engine = Engine(ROWS)
    queries = {"kept": query("kept", approval=APPROVAL, cacheSeconds=60)}

    async def catalog() -> Catalog:
        return Catalog(queries=dict(queries))

    warm = WarmQueries(catalog, engine, 30)
    await warm.execute("kept", None, 10, {})
    queries["kept"] = query("kept", approval=APPROVAL, cacheSeconds=60, kql="Telemetry | take 1")
    assert (await warm.execute("kept", None, 10, {})).from_cache is False
    queries["kept"] = query("kept", cacheSeconds=60, kql="Telemetry | take 1")
    with pytest.raises(WorkspaceError, match="draft"):
        await warm.execute("kept", None, 10, {})


async def test_a_query_approved_before_a_rule_does_not_run() -> None:
    """An approved query that reaches outside the workspace is refused before the engine receives it."""
    assert (await refusal("outside")).code == "QUERY_INVALID"
