"""Limits of the request target and headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.http_server.head_limits import HeadSizeCounter, HeadTooLarge
from shared.errors import Kind
from shared.http.size_limits import MAX_HEADER_BYTES, MAX_HEADERS, MAX_TARGET, header_size


@given(st.lists(st.integers(1, MAX_TARGET), min_size=1, max_size=6))
def test_a_target_counts_in_however_many_parts(parts: list[int]) -> None:
    """The target is rejected at the part that exceeds the limit."""
    sizes, total = HeadSizeCounter(), 0
    sizes.begin()
    for part in parts:
        total += part
        if total > MAX_TARGET:
            with pytest.raises(HeadTooLarge):
                sizes.add_target(b"a" * part)
            assert sizes.error is not None
            assert sizes.error.kind is Kind.TARGET_TOO_LONG
            return
        sizes.add_target(b"a" * part)
    assert sizes.error is None


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 12_000)), max_size=MAX_HEADERS + 5))
def test_headers_count_by_number_and_size(headers: list[tuple[int, int]]) -> None:
    """Headers are rejected at the one that exceeds the number or size."""
    sizes, total = HeadSizeCounter(), 0
    sizes.begin()
    for number, (name, value) in enumerate(headers, 1):
        total += header_size("n" * name, "v" * value)
        if number > MAX_HEADERS or total > MAX_HEADER_BYTES:
            with pytest.raises(HeadTooLarge):
                sizes.add_header(b"n" * name, b"v" * value)
            assert sizes.error is not None
            assert sizes.error.kind is Kind.HEADERS_TOO_LARGE
            return
        sizes.add_header(b"n" * name, b"v" * value)


def test_each_request_has_its_own_limits() -> None:
    """Limits apply to each request of a connection separately."""
    sizes = HeadSizeCounter()
    for _ in range(5):
        sizes.begin()
        sizes.add_target(b"a" * MAX_TARGET)
        for number in range(MAX_HEADERS):
            sizes.add_header(b"%d" % number, b"")


def test_buffered_input_is_limited() -> None:
    """Buffered input without output is limited; output resets the counter."""
    sizes = HeadSizeCounter()
    assert sizes.add_data(MAX_HEADER_BYTES)
    sizes.note_output()
    assert sizes.add_data(10 * MAX_HEADER_BYTES)
    assert sizes.add_data(MAX_HEADER_BYTES)
    assert not sizes.add_data(1)
    assert sizes.error is not None
