"""Times of Event Hub batches: read quickly, and no otherwise than the SDK reads them."""

from datetime import datetime

import pytest
from azure.functions.meta import InConverter
from hypothesis import given
from hypothesis import strategies as st

from functions.enqueued_times import enqueued_time

_FRACTIONS = st.from_regex(r"(\.[0-9]{1,7})?", fullmatch=True)
_INSTANTS = st.datetimes(min_value=datetime(1000, 1, 1))  # noqa: DTZ001  the SDK takes four digits
_ZONES = st.sampled_from(["", "Z", "+00:00", "-00:00", "+01:00"])


def sdk(text: str | None) -> datetime | None:
    """Return what the SDK itself makes of a text."""
    found: datetime | None = InConverter._parse_datetime(text)
    return found


@given(_INSTANTS, _FRACTIONS, _ZONES)
def test_every_instant_is_read_as_the_sdk_reads_it(instant: datetime, fraction: str, zone: str) -> None:
    """Instants with and without fraction and zone give the value, and the zone, that the SDK gives."""
    text = f"{instant:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"
    try:
        expected = sdk(text)
    except ValueError:
        with pytest.raises(ValueError, match="does not match format"):
            enqueued_time(text)
        return
    found = enqueued_time(text)
    assert (found, found and found.tzinfo) == (expected, expected and expected.tzinfo)


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "2026-01-05 08:00:00", "noon", "2026-01-05T24:00:00Z"])
def test_what_is_no_instant_is_refused_as_the_sdk_refuses_it(text: str) -> None:
    """The SDK decides on every other form."""
    with pytest.raises(ValueError, match=r".+") as expected:
        sdk(text)
    with pytest.raises(ValueError, match=r".+") as found:
        enqueued_time(text)
    assert str(found.value) == str(expected.value)


def test_other_forms_and_none() -> None:
    """The forms of the American order are left to the SDK; an event without time has none."""
    assert enqueued_time("01/05/2026 08:00:00Z") == sdk("01/05/2026 08:00:00Z")
    assert enqueued_time(None) is None
    assert enqueued_time("") is None
