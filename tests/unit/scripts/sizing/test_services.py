"""Tests of the request units in the sizing model."""

from scripts.sizing.services import compute_read_ru, compute_write_ru


def test_published_request_units() -> None:
    """Writes of 1 KB and 100 KB cost 5 and 50 RU; reads with bounded staleness cost 2 and 20 RU."""
    assert [compute_write_ru(1), compute_write_ru(100), compute_read_ru(1), compute_read_ru(100)] == [5, 50, 2, 20]
