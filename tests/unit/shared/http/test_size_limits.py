"""Tests of the size limits of URLs and headers, and of the decoding of encoded bodies."""

import gzip
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Request
from shared.http.size_limits import (
    DECODERS,
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_TARGET,
    check_url_and_header_sizes,
    decode_body,
    reject_missing_chunked_body,
)


@pytest.mark.parametrize(
    ("path", "query", "is_allowed"),
    [
        ("/" + "a" * (MAX_TARGET - 1), "", True),
        ("/" + "a" * MAX_TARGET, "", False),
        ("/a", "q" * (MAX_TARGET - 3), True),
        ("/a", "q" * (MAX_TARGET - 2), False),
    ],
)
def test_path_and_query_share_one_size_limit(path: str, query: str, *, is_allowed: bool) -> None:
    """Path, question mark and query of a URL together have one size limit."""
    request = Request("GET", path, query, {}, b"")
    if is_allowed:
        check_url_and_header_sizes(request)
        return
    with pytest.raises(WorkspaceError) as raised:
        check_url_and_header_sizes(request)
    assert raised.value.code == "URI_TOO_LONG"


@pytest.mark.parametrize(
    ("headers", "is_allowed"),
    [
        ({f"h{number}": "" for number in range(MAX_HEADERS)}, True),
        ({f"h{number}": "" for number in range(MAX_HEADERS + 1)}, False),
        ({"h": "x" * (MAX_HEADER_BYTES - 5)}, True),
        ({"h": "x" * (MAX_HEADER_BYTES - 4)}, False),
    ],
)
def test_headers_are_limited_in_number_and_size(headers: dict[str, str], *, is_allowed: bool) -> None:
    """The number of headers and their total size, with names, values and separators, are limited."""
    request = Request("GET", "/", "", headers, b"")
    if is_allowed:
        check_url_and_header_sizes(request)
        return
    with pytest.raises(WorkspaceError) as raised:
        check_url_and_header_sizes(request)
    assert raised.value.code == "HEADERS_TOO_LARGE"


@pytest.mark.parametrize(
    ("headers", "body", "is_missing"),
    [
        ({"transfer-encoding": "chunked"}, b"", True),
        ({"transfer-encoding": "chunked"}, b"{}", False),
        ({"transfer-encoding": "chunked", "content-length": "0"}, b"", False),
        ({"content-length": "0"}, b"", False),
        ({}, b"", False),
    ],
)
def test_a_chunked_body_that_is_missing_is_rejected(headers: dict[str, str], body: bytes, *, is_missing: bool) -> None:
    """A request without body is rejected if its headers announce a body without a length."""
    request = Request("POST", "/", "", headers, body)
    if not is_missing:
        reject_missing_chunked_body(request)
        return
    with pytest.raises(WorkspaceError) as raised:
        reject_missing_chunked_body(request)
    assert (raised.value.kind, raised.value.code) == (Kind.LENGTH_REQUIRED, "LENGTH_REQUIRED")


LIMIT = 16 * 1024 * 1024
ENCODERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress}


def get_decoding_error(body: bytes, encoding: str, limit: int = LIMIT) -> WorkspaceError:
    """Decode a body that must be rejected, and return the error that was raised."""
    with pytest.raises(WorkspaceError) as caught:
        decode_body(body, encoding, limit)
    return caught.value


@given(parts=st.lists(st.binary(max_size=20_000), min_size=1, max_size=3), encoding=st.sampled_from(sorted(DECODERS)))
def test_compressed_members_are_decoded_in_order(parts: list[bytes], encoding: str) -> None:
    """Several gzip members or zstd frames of a body are decoded in order and joined."""
    body = b"".join(ENCODERS[encoding](part) for part in parts)
    assert decode_body(body, encoding, LIMIT) == b"".join(parts)


@pytest.mark.parametrize("encoding", sorted(DECODERS))
def test_the_size_limit_counts_decoded_bytes(encoding: str) -> None:
    """A body whose decoded size equals the limit is accepted; one byte more is rejected."""
    assert len(decode_body(ENCODERS[encoding](bytes(1000)), encoding, 1000)) == 1000
    error = get_decoding_error(ENCODERS[encoding](bytes(1001)), encoding, 1000)
    assert (error.kind, error.code) == (Kind.TOO_LARGE, "BODY_TOO_LARGE")


@pytest.mark.parametrize("encoding", sorted(DECODERS))
def test_a_small_body_that_becomes_a_gigabyte_is_rejected_in_little_memory(encoding: str) -> None:
    """Decoding stops at the size limit, so that memory use stays near the limit."""
    member = ENCODERS[encoding](bytes(64 * 1024 * 1024))
    bomb = member * 16
    tracemalloc.start()
    error = get_decoding_error(bomb, encoding)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.code == "BODY_TOO_LARGE"
    assert peak < LIMIT + 16 * 1024 * 1024


@pytest.mark.parametrize("encoding", sorted(DECODERS))
def test_a_damaged_body_is_rejected(encoding: str) -> None:
    """A body is rejected if it is not encoded, ends too early, or has bytes after its end."""
    whole = ENCODERS[encoding](b"x" * 1000)
    for body in (b"{}", whole[:-1], whole + b"x"):
        error = get_decoding_error(body, encoding)
        assert (error.kind, error.code) == (Kind.INVALID, "BODY_NOT_DECODABLE")


@pytest.mark.parametrize("encoding", sorted(DECODERS))
def test_more_than_1000_compressed_members_are_rejected(encoding: str) -> None:
    """More than 1,000 members are rejected, because empty members take time without adding to the size."""
    member = ENCODERS[encoding](b"")
    assert decode_body(member * 1000, encoding, LIMIT) == b""
    assert get_decoding_error(member * 1001, encoding).code == "BODY_NOT_DECODABLE"
