"""Tests of OAuth clients and their redirect URIs."""

import pytest

from shared.errors import WorkspaceError
from shared.oauth.clients import Client

DECLARED = ("https://tool.example/callback", "http://127.0.0.1/callback")


@pytest.mark.parametrize("requested", [*DECLARED, "http://127.0.0.1:49152/callback"])
def test_declared_uris_are_accepted(requested: str) -> None:
    """A redirect URI must equal a declared URI; a loopback URI may have any port."""
    assert Client("tool", "Tool", DECLARED).find_redirect_uri(requested) == requested


@pytest.mark.parametrize(
    "requested",
    [
        None,
        "",
        "https://tool.example/callback/",
        "https://tool.example:8443/callback",
        "https://tool.example/callback?x=1",
        "https://tool.example.evil.example/callback",
        "http://127.0.0.1:49152/other",
        "http://127.0.0.1@evil.example/callback",
    ],
)
def test_other_uris_are_rejected(requested: str | None) -> None:
    """A redirect URI that is not declared is rejected; a client with several declared URIs must state one."""
    with pytest.raises(WorkspaceError) as failed:
        Client("tool", "Tool", DECLARED).find_redirect_uri(requested)
    assert failed.value.code == "REDIRECT_URI_MISMATCH"


def test_an_only_uri_may_be_omitted() -> None:
    """A client with one declared redirect URI may omit it; a client whose id is a URL has a metadata document."""
    assert Client("tool", "Tool", DECLARED[:1]).find_redirect_uri(None) == DECLARED[0]
    assert Client("tool", "Tool", ()).is_declared
    assert not Client("https://tool.example/client.json", "Tool", ()).is_declared
