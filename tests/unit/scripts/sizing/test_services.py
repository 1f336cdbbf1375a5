"""Tests of request units of the sizing model."""

from scripts.sizing.services import compute_read_ru, compute_write_ru


def test_published_request_units() -> None:
    """Writes cost 5 and 50 RU for 1 KB and 100 KB, reads under bounded staleness 2 and 20."""
    assert [compute_write_ru(1), compute_write_ru(100), compute_read_ru(1), compute_read_ru(100)] == [5, 50, 2, 20]
