"""Tests of the size limits of URLs and headers."""

import pytest

from shared.errors import WorkspaceError
from shared.http.messages import Request
from shared.http.size_limits import MAX_HEADER_BYTES, MAX_HEADERS, MAX_TARGET, check_request_size


@pytest.mark.parametrize(
    ("path", "query", "is_allowed"),
    [
        ("/" + "a" * (MAX_TARGET - 1), "", True),
        ("/" + "a" * MAX_TARGET, "", False),
        ("/a", "q" * (MAX_TARGET - 3), True),
        ("/a", "q" * (MAX_TARGET - 2), False),
    ],
)
def test_path_and_query_have_one_limit(path: str, query: str, *, is_allowed: bool) -> None:
    """Path, question mark and query of a URL count together towards one size limit."""
    request = Request("GET", path, query, {}, b"")
    if is_allowed:
        check_request_size(request)
        return
    with pytest.raises(WorkspaceError) as raised:
        check_request_size(request)
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
    """The number of headers is limited, and so is their size, which includes names, values and separators."""
    request = Request("GET", "/", "", headers, b"")
    if is_allowed:
        check_request_size(request)
        return
    with pytest.raises(WorkspaceError) as raised:
        check_request_size(request)
    assert raised.value.code == "HEADERS_TOO_LARGE"
