"""Tests of token ids, which contain the time of issue."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.auth.token_ids import build_token_id, read_issue_time
from shared.runtime import SYSTEM_RUNTIME

AT = datetime(2026, 1, 5, 8, 0, 0, 123456, tzinfo=UTC)


@given(st.integers(0, 3_000_000_000_000_000))
def test_a_token_id_contains_the_time_of_issue(microseconds: int) -> None:
    """The time of issue can be read from a token id to the microsecond."""
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
    assert read_issue_time(build_token_id(SYSTEM_RUNTIME, at)) == at


def test_token_ids_are_unique_and_sorted_by_time() -> None:
    """Two token ids of the same moment differ; ids of later moments are greater."""
    ids = [build_token_id(SYSTEM_RUNTIME, AT + timedelta(microseconds=number // 2)) for number in range(200)]
    assert len(set(ids)) == 200
    assert [one[:16] for one in ids] == sorted(one[:16] for one in ids)
    assert {len(one) for one in ids} == {32}


@pytest.mark.parametrize("token_id", ["", "x", "0af7651916cd43dd8448eb211c80319c", "0" * 32, "g" * 32])
def test_token_ids_of_earlier_versions_have_no_time(token_id: str) -> None:
    """Token ids of earlier versions are random and have no time."""
    assert read_issue_time(token_id) is None
