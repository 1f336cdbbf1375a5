"""Tests of the checks of Host headers and request targets, and of the limits of targets and headers."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.http_server.request_head import (
    HeadSizeCounter,
    HeadTooLarge,
    check_host_header,
    check_single_idempotency_key,
    is_loopback_host,
    split_target_into_host_and_path,
)
from shared.errors import Kind, WorkspaceError
from shared.http.size_limits import MAX_HEADER_BYTES, MAX_HEADERS, MAX_TARGET, count_header_bytes


@pytest.mark.parametrize(
    "host", ["a", "a.example:80", "127.0.0.1:7071", "[::1]", "[::1]:7071", "a_b", "a%2Db", "a:", "a:65535"]
)
def test_valid_hosts_are_accepted(host: str) -> None:
    """A Host header is valid if it is a name or address, with or without a port."""
    check_host_header([(b"host", host.encode())], "1.1")


@pytest.mark.parametrize(
    "host",
    [
        *("", ":80", "a/b", "a?b", "a#b", "u@a", "a b", " a", "a\tb", "a\nb", "a\x00", "a\x7f", "a:80:80", "a:x"),
        *("[::1", "::1", "[]", "a\\b", "é", "a%2"),
        *("a:65536", "a:99999", "a:000080", "[1:2]", "[....]", "[1.2.3.4]", "[::1]a", "[v1.a]"),
    ],
)
def test_invalid_hosts_are_rejected(host: str) -> None:
    """A Host header with a path, query or user name is rejected."""
    with pytest.raises(WorkspaceError, match="host:port"):
        check_host_header([(b"host", host.encode("latin-1"))], "1.1")


@given(st.binary(max_size=40))
def test_valid_host_never_changes_the_path(host: bytes) -> None:
    """A valid Host header cannot change the path and query of a URL."""
    try:
        check_host_header([(b"host", host)], "1.1")
    except WorkspaceError:
        return
    if host.startswith(b"["):
        return  # the standard library rejects invalid literals
    parts = urlsplit(f"http://{host.decode('latin-1')}/path?query")
    assert (parts.path, parts.query, parts.username) == ("/path", "query", None)


def test_host_header_is_required_once() -> None:
    """HTTP/1.1 requires exactly one Host header; in HTTP/1.0 it is optional."""
    check_host_header([], "1.0")
    for headers, version in (([], "1.1"), ([(b"host", b"a")] * 2, "1.1"), ([(b"host", b"a")] * 2, "1.0")):
        with pytest.raises(WorkspaceError, match="exactly once"):
            check_host_header(headers, version)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *((each, True) for each in ("localhost", "LocalHost:7071", "127.0.0.1", "127.8.0.9:1", "[::1]", "[::1]:7071")),
        *(
            (each, False)
            for each in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "10.0.0.1")
        ),
        *((each, False) for each in ("[fe80::1]:1", "a", "xlocalhost", "[")),
    ],
)
def test_only_loopback_addresses_name_this_machine(host: str, *, here: bool) -> None:
    """Only loopback addresses and the name localhost count as names of this machine."""
    assert is_loopback_host(host.encode()) is here


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"/a?b", (None, b"/a?b")),
        (b"//a/b", (None, b"//a/b")),
        (b"/http://a/b", (None, b"/http://a/b")),
        (b"http://h:1/a?b", (b"h:1", b"/a?b")),
        (b"HTTPS://h/a", (b"h", b"/a")),
        (b"http://h", (b"h", b"/")),
        (b"http://h?b/c", (b"h", b"/?b/c")),
        (b"http://u@h/a", (b"u@h", b"/a")),
        (b"*", (None, b"*")),
    ],
)
def test_an_absolute_target_is_split_into_host_and_target(target: bytes, expected: tuple[bytes | None, bytes]) -> None:
    """An absolute request target is split into host and relative target; a relative target is unchanged."""
    assert split_target_into_host_and_path(target) == expected


@pytest.mark.parametrize("target", [b"ftp://h/a", b"ws://h/a", b"httpx://h/a", b"file:///a", b"a+b://h"])
def test_a_target_with_a_scheme_other_than_http_is_rejected(target: bytes) -> None:
    """An absolute request target must have the scheme http or https."""
    with pytest.raises(WorkspaceError, match="http or https"):
        split_target_into_host_and_path(target)


@given(st.lists(st.integers(1, MAX_TARGET), min_size=1, max_size=6))
def test_a_target_received_in_parts_is_limited(parts: list[int]) -> None:
    """If a request target arrives in parts, it is rejected at the first part with which it exceeds the limit."""
    sizes, total = HeadSizeCounter(), 0
    sizes.begin_request()
    for part in parts:
        total += part
        if total > MAX_TARGET:
            with pytest.raises(HeadTooLarge):
                sizes.count_target(b"a" * part)
            assert sizes.error is not None
            assert sizes.error.kind is Kind.TARGET_TOO_LONG
            return
        sizes.count_target(b"a" * part)
    assert sizes.error is None


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 12_000)), max_size=MAX_HEADERS + 5))
def test_headers_are_limited_by_number_and_size(headers: list[tuple[int, int]]) -> None:
    """The first header that exceeds the maximum number or total size is rejected."""
    sizes, total = HeadSizeCounter(), 0
    sizes.begin_request()
    for number, (name, value) in enumerate(headers, 1):
        total += count_header_bytes("n" * name, "v" * value)
        if number > MAX_HEADERS or total > MAX_HEADER_BYTES:
            with pytest.raises(HeadTooLarge):
                sizes.count_header(b"n" * name, b"v" * value)
            assert sizes.error is not None
            assert sizes.error.kind is Kind.HEADERS_TOO_LARGE
            return
        sizes.count_header(b"n" * name, b"v" * value)


def test_each_request_has_its_own_limits() -> None:
    """The limits of target and headers apply to each request of a connection separately."""
    sizes = HeadSizeCounter()
    for _ in range(5):
        sizes.begin_request()
        sizes.count_target(b"a" * MAX_TARGET)
        for number in range(MAX_HEADERS):
            sizes.count_header(b"%d" % number, b"")


def test_buffered_parser_input_is_limited() -> None:
    """Input that the parser buffers without output is limited; any output resets the count."""
    sizes = HeadSizeCounter()
    assert sizes.try_count_parser_input(MAX_HEADER_BYTES)
    sizes.mark_parser_buffer_empty()
    assert sizes.try_count_parser_input(10 * MAX_HEADER_BYTES)
    assert sizes.try_count_parser_input(MAX_HEADER_BYTES)
    assert not sizes.try_count_parser_input(1)
    assert sizes.error is not None


def test_a_repeated_idempotency_key_header_is_rejected() -> None:
    """A request with two Idempotency-Key headers is rejected, because joining them gives a key that no client sent."""
    one = (b"idempotency-key", b"k")
    check_single_idempotency_key([(b"host", b"a"), one, (b"prefer", b"wait=1"), (b"prefer", b"x")])
    with pytest.raises(WorkspaceError) as error:
        check_single_idempotency_key([one, (b"host", b"a"), one])
    assert error.value.members["errors"] == [{"field": "Idempotency-Key", "message": "must be sent once, not 2 times"}]
