"""Tests of the request options of queries."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulators.kusto.errors import QueryError
from emulators.kusto.options import DEFAULT_MAX_RECORDS, parse_request_options


@given(st.timedeltas(timedelta(milliseconds=1), timedelta(hours=1)))
def test_the_timeout_format_of_the_python_client_is_accepted(span: timedelta) -> None:
    """The timeout format of the Python client, ``str(timedelta)``, is accepted."""
    assert parse_request_options({"servertimeout": str(span)}).timeout_seconds == pytest.approx(span.total_seconds())


def test_request_options_are_limited_and_case_insensitive() -> None:
    """A limit above the maximum is reduced; option names ignore letter case."""
    options = parse_request_options(
        {"TruncationMaxRecords": 10**12, "Query_Take_Max_Records": "7", "request_readonly": True}
    )
    assert options.max_records == DEFAULT_MAX_RECORDS
    assert options.take_records == 7


@pytest.mark.parametrize("value", [True, -1, 1.5, "x", [], "\u0663"])
def test_a_request_option_for_a_count_must_be_a_whole_number(value: Any) -> None:
    """A count that is not a whole number from 0 on is rejected with the option's name."""
    with pytest.raises(QueryError, match="truncationmaxrecords"):
        parse_request_options({"truncationmaxrecords": value})
