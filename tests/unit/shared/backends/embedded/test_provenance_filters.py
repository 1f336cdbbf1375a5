"""Tests that filters of audit chains use an index."""

import sqlite3
from contextlib import closing

import pytest

from shared.backends.embedded.provenance_filters import select_matching_rows
from shared.backends.embedded.provenance_schema import DECISIONS, SCHEMA
from shared.provenance.ports import Filters

WITH_AN_INDEX = {"UserID": "by_user", "ReasonCategory": "by_reason", "Status": "by_status"}


@pytest.mark.parametrize("name", WITH_AN_INDEX)
@pytest.mark.parametrize("others", [{}, {"ActionType": "Update", "EntityType": "Batch"}])
def test_queries_for_rare_values_use_an_index(name: str, others: dict[str, str]) -> None:
    """A query for rare values uses an index and does not scan the chain."""
    plan: list[str] = []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        connection.set_trace_callback(plan.append)
        list(
            select_matching_rows(
                connection,
                1,
                Filters(equal={name: "x", **others}),
                newest_first=True,
                offset=0,
                is_amendment_chain=False,
            )
        )
        connection.set_trace_callback(None)
        steps = connection.execute(f"EXPLAIN QUERY PLAN {plan[-1]}").fetchall()
    assert [WITH_AN_INDEX[name] in step[3] for step in steps] == [True]


def test_searches_for_amendments_and_decisions_use_indexes() -> None:
    """Searches for amendments of an entity, and for decisions about amendments, use indexes."""
    plan: list[str] = []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        connection.set_trace_callback(plan.append)
        filters = Filters(equal={"EntityID": "x"})
        list(select_matching_rows(connection, 1, filters, newest_first=False, offset=0, is_amendment_chain=True))
        connection.set_trace_callback(None)
        steps = [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {plan[-1]}")]
        names = {"chain": 1, "ids": "[]"}
        steps += [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {DECISIONS}", names)]
    used = [step.split()[4] for step in steps if step.startswith("SEARCH records USING INDEX")]
    assert used == ["by_corrected", "by_decided", "by_amendment"]


@pytest.mark.parametrize("name", ["Status", "UserID", "ReasonCategory", "EntityID", "EntityType"])
def test_a_query_for_sequence_numbers_reads_only_records_with_these_numbers(name: str) -> None:
    """A query for the records with given sequence numbers searches each of them in an index."""
    plan: list[str] = []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        connection.set_trace_callback(plan.append)
        filters = Filters(equal={"Status": "pending", name: "pending"}, sequences=(3, 2))
        list(select_matching_rows(connection, 1, filters, newest_first=True, offset=0, is_amendment_chain=True))
        connection.set_trace_callback(None)
        steps = [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {plan[-1]}")]
    assert ["sequence=?" in step for step in steps if "records" in step] == [True]
