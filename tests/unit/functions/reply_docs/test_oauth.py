"""Tests of the OAuth authorization server's metadata."""

from functions.reply_docs.oauth import ServerMetadata, build_server_metadata


def test_all_urls_begin_with_the_issuer() -> None:
    """All URLs in the metadata begin with the issuer, as RFC 8414 requires."""
    metadata = build_server_metadata("https://plant.example")
    assert metadata.keys() == ServerMetadata.__annotations__.keys()
    assert metadata["issuer"] == "https://plant.example"
    for name, value in metadata.items():
        if name.endswith(("_endpoint", "_uri", "_documentation")):
            assert str(value).startswith("https://plant.example/"), name


def test_only_secure_flows_are_offered() -> None:
    """The metadata offers no implicit grant, and PKCE only with S256, as OAuth 2.1 requires."""
    metadata = build_server_metadata("https://plant.example")
    assert metadata["response_types_supported"] == ["code"]
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert "password" not in metadata["grant_types_supported"]
