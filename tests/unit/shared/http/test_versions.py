"""Tests of the API version in requests and replies."""

import pytest

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request
from shared.http.versions import CURRENT, add_version_header, check_api_version


def build_request(**headers: str) -> Request:
    """Return a request with headers."""
    return Request("GET", "/", "", headers, b"")


@pytest.mark.parametrize("headers", [{}, {"oi-version": CURRENT}, {"oi-version": f" {CURRENT} "}])
def test_supported_api_versions_are_accepted(headers: dict[str, str]) -> None:
    """A request with a supported API version, or without a version, is accepted."""
    check_api_version(build_request(**headers))


@pytest.mark.parametrize("version", ["2026-11-30", "", "latest", f"{CURRENT}, {CURRENT}"])
def test_unknown_api_versions_are_rejected(version: str) -> None:
    """The error about an unknown API version lists the supported versions."""
    with pytest.raises(WorkspaceError) as caught:
        check_api_version(build_request(**{"oi-version": version}))
    assert (caught.value.kind, caught.value.code) == (Kind.INVALID, "VERSION_UNKNOWN")
    errors = [{"field": "Oi-Version", "message": f"must be a supported version: {CURRENT}"}]
    assert caught.value.members == {"errors": errors, "supported": [CURRENT]}


def test_replies_state_the_api_version() -> None:
    """Each reply has a header with the current API version."""
    reply = Reply()
    add_version_header(reply)
    assert reply.headers == {"Oi-Version": "2026-12-01"}
