"""Tests of the start of the local host: pending audit events, and the background check of warm queries."""

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from local.host import first_run as module
from local.host.first_run import QueryChecks
from shared.catalog.document import load_document, load_document_with_positions
from shared.catalog.models import WarmQuery
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.observability.readiness import list_running_background_work
from shared.settings import Settings
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import Column, EngineQuery, EngineResult
from shared.wiring import Services

TEXT = """\
workspace: {id: w, name: W}
team:
  - {id: a@w, name: A, role: Admin}
surfaces:
  - {lookup: s, name: S, connections: []}
warmQueries:
  - {lookup: good, name: Good, surface: s, kql: Telemetry | count}
  - {lookup: bad, name: Bad, surface: s, kql: Telemetry | take 0}
"""


class Engine:
    """Fake query engine that rejects one query and raises timeouts in its first calls."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.running: list[str] = []

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return a query's columns.

        The first calls raise a timeout, as often as the test has set. The query with ``take 0`` is rejected.
        """
        self.running = list_running_background_work()
        if self.failures:
            self.failures -= 1
            raise WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "late")
        if "take 0" in query.text:
            raise build_invalid_field_error("query", "rejected", code="QUERY_INVALID")
        return EngineResult((Column("Count", "long"),), [], 1.0)

    async def ping(self) -> None:
        """Report that the engine is reachable."""


class Catalog:
    """Fake catalog with the queries of a workspace document."""

    async def get_current_catalog(self) -> Any:
        """Return the catalog."""
        queries = load_document(TEXT, "w.yaml").warm_queries
        return SimpleNamespace(queries={query.lookup: SimpleNamespace(value=query) for query in queries})


async def check_queries(engine: Engine, *, first_start: bool) -> QueryColumns:
    """Run the background check of the queries, and return the cache of columns that it fills."""
    columns = QueryColumns(engine)
    services = cast("Any", SimpleNamespace(catalog=Catalog(), queries=SimpleNamespace(columns=columns)))
    loaded = load_document_with_positions(TEXT, "w.yaml") if first_start else None
    await QueryChecks(loaded, lambda: services).run()
    return columns


def list_problems(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the problems of queries that were logged."""
    logged = (vars(record).get("fields", {}) for record in caplog.records)
    return [each["problem"] for each in logged if "problem" in each]


async def test_first_start_logs_the_line_of_a_rejected_query(caplog: pytest.LogCaptureFixture) -> None:
    """At the first start, the log has the position of a rejected query in the workspace document."""
    await check_queries(Engine(), first_start=True)
    [problem] = list_problems(caplog)
    assert problem.startswith("w.yaml:8:")
    assert problem.endswith("warmQueries[1].kql: rejected")


async def test_later_start_logs_the_id_of_a_rejected_query(caplog: pytest.LogCaptureFixture) -> None:
    """At later starts, stored queries are checked, and the log has the id of each rejected query."""
    await check_queries(Engine(), first_start=False)
    assert list_problems(caplog) == ["bad: rejected"]


async def test_readiness_reports_the_running_check_of_queries() -> None:
    """The readiness probe reports the check of queries while it runs, and no longer afterwards."""
    engine = Engine()
    await check_queries(engine, first_start=True)
    assert (engine.running, list_running_background_work()) == ([module.NAME], [])


async def test_the_check_of_queries_fills_the_cache_of_columns() -> None:
    """After the check, the columns of all queries are cached, and the engine is not called for them again."""
    engine = Engine()
    columns = await check_queries(engine, first_start=True)
    engine.failures = 1
    query = WarmQuery(lookup="other", name="Other", surface="s", kql="Telemetry | count")
    assert await columns.find_columns(query) == (Column("Count", "long"),)
    assert engine.failures == 1


@pytest.mark.parametrize(("failures", "is_ended"), [(module.RETRIES, False), (module.RETRIES + 1, True)])
async def test_the_check_of_queries_continues_after_failures_of_the_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failures: int, *, is_ended: bool
) -> None:
    """If the engine fails, a query is checked again; after too many failures, the check ends."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0)
    await check_queries(Engine(failures), first_start=True)
    assert ("the remaining queries are not checked" in caplog.text) is is_ended
    assert "checked the queries" in caplog.text


async def test_only_the_first_start_writes_api_keys(tmp_path: Path) -> None:
    """The first start writes the API keys of all members; a later start writes none, even if the file was deleted."""
    document = tmp_path / "w.yaml"
    document.write_text(TEXT)
    settings = Settings.read({"DATA_DIR": str(tmp_path)})
    await module.seed_data_dir_and_build_query_checks(settings, document)
    keys = tmp_path / "keys.json"
    assert (list(json.loads(keys.read_text())), keys.stat().st_mode & 0o777) == (["a@w"], 0o600)
    keys.unlink()
    await module.seed_data_dir_and_build_query_checks(settings, document)
    assert not keys.exists()


@pytest.mark.parametrize("has_key", [False, True])
async def test_the_first_start_writes_api_keys_for_a_workspace_that_a_command_stored(
    tmp_path: Path, *, has_key: bool
) -> None:
    """If a command stored the workspace, the first start writes the API keys, unless the command issued one."""
    settings = Settings.read({"DATA_DIR": str(tmp_path)})
    wired = Services(settings)
    await wired.provenance.catalog_service.apply(load_document(TEXT, "w.yaml"), "apply")
    if has_key:
        await wired.access.api_keys.issue_without_rights_check("apply", "a@w", "command")
    await wired.close()
    await module.seed_data_dir_and_build_query_checks(settings, tmp_path / "w.yaml")
    assert (tmp_path / "keys.json").exists() != has_key


async def test_the_next_start_writes_the_api_keys_of_an_interrupted_first_start(tmp_path: Path) -> None:
    """If the first start ends before it has written the API keys, the next start writes them."""
    document = tmp_path / "w.yaml"
    document.write_text(TEXT)
    settings = Settings.read({"DATA_DIR": str(tmp_path)})
    keys = tmp_path / "keys.json"
    keys.mkdir()
    with pytest.raises(OSError, match="directory"):
        await module.seed_data_dir_and_build_query_checks(settings, document)
    keys.rmdir()
    await module.seed_data_dir_and_build_query_checks(settings, document)
    assert list(json.loads(keys.read_text())) == ["a@w"]


async def test_a_pending_event_of_a_damaged_chain_does_not_prevent_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If a pending audit event cannot be appended, the start reports it and continues, and the event stays pending."""
    settings = Settings.read({"DATA_DIR": str(tmp_path)})
    document = tmp_path / "w.yaml"
    document.write_text(TEXT + "policies: {provenance: {}}\n")
    await module.seed_data_dir_and_build_query_checks(settings, document)
    with closing(sqlite3.connect(tmp_path / "provenance.sqlite", isolation_level=None)) as database:
        sql = "SELECT chain, sequence FROM chains WHERE target = 'PlatformConfig'"
        [(chain, last)] = database.execute(sql).fetchall()
        row = chain, last + 5, "forged", b"{}", "x"
        database.execute("INSERT INTO records (chain, sequence, append_id, canonical, hash) VALUES (?,?,?,?,?)", row)
    event = '{"ActionType": "A", "EntityType": "T", "EntityID": "E"}'
    with closing(sqlite3.connect(tmp_path / "workspace.sqlite", isolation_level=None)) as database:
        sql = "INSERT INTO catalog_outbox (append_id, target, user_id, event) VALUES ('1', 'PlatformConfig', 'a@w', ?)"
        database.execute(sql, (event,))
    await module.seed_data_dir_and_build_query_checks(settings, document)
    assert "audit events stay pending" in caplog.text
    with closing(sqlite3.connect(tmp_path / "workspace.sqlite")) as database:
        assert database.execute("SELECT append_id FROM catalog_outbox").fetchall() == [("1",)]
