"""Tests of the request units in the sizing model."""

from scripts.sizing.services import compute_read_request_units, compute_write_request_units


def test_computed_request_units_equal_the_published_ones() -> None:
    """A write of 1 or 100 KB costs 5 or 50 RU; a read with bounded staleness costs 2 or 20 RU."""
    assert [
        compute_write_request_units(1),
        compute_write_request_units(100),
        compute_read_request_units(1),
        compute_read_request_units(100),
    ] == [5, 50, 2, 20]
