"""Tests of the helpers that read parts of an ASGI request."""

import pytest

from emulators.web_pubsub.asgi import find_bearer_token, read_headers, read_host_and_port, read_query_parameters


def test_repeated_headers_and_parameters_become_lists() -> None:
    """A repeated header or query parameter becomes a list, also with empty values and bytes that are not ASCII."""
    scope = {"headers": [(b"a", b"1"), (b"b", b"\xe4"), (b"a", b"2")], "query_string": b"x=1&x=&y=%20"}
    assert read_headers(scope) == {"a": ["1", "2"], "b": ["\xe4"]}
    assert read_query_parameters(scope) == {"x": ["1", ""], "y": [" "]}


@pytest.mark.parametrize(
    ("values", "token"),
    [
        ([], None),
        (["Basic x"], None),
        (["Bearer abc"], "abc"),
        (["bearer  abc\t"], "abc"),
        (["Basic x", "Bearer abc"], "abc"),
        (["Bearer"], ""),
    ],
)
def test_the_token_is_in_a_bearer_header(values: list[str], token: str | None) -> None:
    """The token is read from a Bearer header, with the scheme in any letter case."""
    assert find_bearer_token({"authorization": values}) == token


@pytest.mark.parametrize(
    ("host", "origin"), [([], "127.0.0.1:80"), ([""], "127.0.0.1:80"), (["EXAMPLE:1"], "example:1")]
)
def test_the_origin_of_a_request_is_its_host_header(host: list[str], origin: str) -> None:
    """The origin of a request is its Host header or, without this header, the address of the server."""
    assert read_host_and_port({"server": ("127.0.0.1", 80)}, {"host": host} if host else {}) == origin
