"""Tests of the query strings of the audit log."""

import pytest
from pydantic import ValidationError

from functions.provenance_queries import (
    EventsQuery,
    ExportQuery,
    LenientParser,
    SequenceQuery,
    WindowQuery,
)
from shared.provenance.ports import Filters


@pytest.mark.parametrize(
    ("text", "number", "is_ignored"),
    [
        (None, 100, False),
        ("1", 1, False),
        ("9" * 400, 2**62, False),
        ("0", 100, True),
        ("-1", 100, True),
        ("+1", 100, True),
        ("1.0", 100, True),
        ("", 100, True),
        ("9" * 401, 100, True),
    ],
)
def test_an_invalid_query_number_is_replaced_with_the_default(
    text: str | None, number: int, *, is_ignored: bool
) -> None:
    """An invalid number is replaced with the default, as the contract requires; a header names the parameter."""
    parser = LenientParser()
    assert parser.parse_number("limit", text, minimum=1, default=100) == number
    assert parser.build_ignored_parameters_header() == ({"x-provenance-ignored": "limit"} if is_ignored else {})


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        (None, ""),
        ("2026-01-05", "2026-01-05T00:00:00.000000Z"),
        ("2026-01-05T08:00:00", "2026-01-05T08:00:00.000000Z"),
        ("2026-01-05t08:00:00.5z", "2026-01-05T08:00:00.500000Z"),
        ("2026-01-05T09:00:00+01:00", "2026-01-05T08:00:00.000000Z"),
        ("2026-01-05T09:00:00 01:00", "2026-01-05T08:00:00.000000Z"),
        ("yesterday", ""),
        ("0001-01-01T00:00:00+01:00", ""),
        ("2026-02-30", ""),
        ("2026-01-05T09:00:00+02:99", ""),
        ("2026-01-05T09:00:00 02:99", ""),
    ],
)
def test_a_query_time_is_converted_to_the_format_of_records(text: str | None, instant: str) -> None:
    """A query time without a zone is read as UTC; a plus sign of an offset that was decoded as a blank is restored."""
    parser = LenientParser()
    assert parser.parse_iso_timestamp("startDate", text) == instant
    assert parser.ignored == ([] if instant or text is None else ["startDate"])


def test_dates_and_sequence_numbers_of_a_query_become_filters() -> None:
    """The dates and sequence numbers of a query become filters for records."""
    by_sequence = SequenceQuery.model_validate({"startDate": "2026-01-05", "fromSequence": "7", "toSequence": "+9"})
    expected = Filters(start="2026-01-05T00:00:00.000000Z", from_sequence=7, to_sequence=9)
    assert LenientParser().parse_range_filters(by_sequence) == expected
    assert LenientParser().parse_range_filters(WindowQuery.model_validate({"endDate": "x"})) == Filters()


def test_a_range_with_dates_between_microseconds_contains_no_record_outside_it() -> None:
    """A start between two microseconds is rounded up and an end down, because records have whole microseconds."""
    query = WindowQuery.model_validate(
        {"startDate": "2026-01-05T08:00:00.0000009Z", "endDate": "2026-01-05T09:00:00.0000009Z"}
    )
    expected = Filters(start="2026-01-05T08:00:00.000001Z", end="2026-01-05T09:00:00.000000Z")
    assert LenientParser().parse_range_filters(query) == expected


@pytest.mark.parametrize("text", ["", "x", "1.5", "0x10"])
def test_a_sequence_must_be_a_number(text: str) -> None:
    """A sequence that is not a number is rejected, because a default would return unexpected records."""
    with pytest.raises(ValidationError):
        SequenceQuery.model_validate({"fromSequence": text})


@pytest.mark.parametrize(
    ("model", "default", "maximum"), [(EventsQuery, "100", "1000"), (ExportQuery, "10000", "100000")]
)
def test_the_description_of_a_limit_names_its_default_and_maximum(
    model: type[WindowQuery], default: str, maximum: str
) -> None:
    """The description of the parameter `limit` names the default and the maximum of the operation."""
    description = model.model_fields["limit"].description
    assert description == (
        f"Maximum number of records, by default {default}. An invalid value selects the default, and a value above "
        f"{maximum} selects {maximum}."
    )


def test_an_empty_filter_counts_as_missing() -> None:
    """An empty filter counts as missing, because HTML forms send empty fields; a header names the parameter."""
    parser, query = LenientParser(), EventsQuery.model_validate({"entityType": "", "userId": "ann"})
    assert parser.parse_equality_filters(query) == {"UserID": "ann"}
    assert parser.ignored == ["entityType"]
