"""Tests of the metadata of the authorization server."""

from functions.replies.oauth import ServerMetadata, build_metadata


def test_all_addresses_have_the_base() -> None:
    """RFC 8414: the issuer is the base URL, and the document has every member of its type."""
    metadata = build_metadata("https://plant.example")
    assert metadata.keys() == ServerMetadata.__annotations__.keys()
    assert metadata["issuer"] == "https://plant.example"
    for name, value in metadata.items():
        if name.endswith(("_endpoint", "_uri", "_documentation")):
            assert str(value).startswith("https://plant.example/"), name


def test_only_safe_forms_are_offered() -> None:
    """OAuth 2.1 has no implicit grant and requires PKCE with S256."""
    metadata = build_metadata("https://plant.example")
    assert metadata["response_types_supported"] == ["code"]
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert "password" not in metadata["grant_types_supported"]
