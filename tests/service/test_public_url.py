"""Tests of the setting PUBLIC_URL, and of the addresses in replies without it."""

import pytest

from tests.service.local_service import Service

PUBLIC = "https://plant.example"


def test_links_begin_with_the_public_url(own_service: Service) -> None:
    """OAuth metadata, the 401 challenge, the OpenAPI document and file links begin with PUBLIC_URL."""
    own_service._environment["PUBLIC_URL"] = PUBLIC + "/"
    service = own_service.start()
    anonymous, editor = service.create_anonymous_client(), service.create_client("editor@t")
    metadata = "/.well-known/oauth-protected-resource/oi-api/mcp"
    assert anonymous.get(metadata, headers={"Host": "plant.example"}).json()["resource"] == f"{PUBLIC}/oi-api/mcp"
    challenge = anonymous.post("/oi-api/mcp", json={}).headers["WWW-Authenticate"]
    assert f'resource_metadata="{PUBLIC}{metadata}"' in challenge
    assert editor.get("/oi-api/openapi").json()["servers"][0]["url"] == PUBLIC
    expected = {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}
    started = editor.post(
        "/oi-api/downloads/data-connections/pump-rig", json={"dateRange": expected}, headers={"Prefer": "wait=30"}
    )
    [file] = started.json()["files"]
    assert file["url"].startswith(f"{PUBLIC}/files/")
    assert editor.get(file["url"].removeprefix(PUBLIC)).status_code == 200


@pytest.mark.parametrize(
    ("forwarded", "scheme"),
    [
        (None, "http"),
        ("http", "http"),
        ("https", "https"),
        ("HTTPS", "https"),
        ("https, http", "https"),
        ("javascript", "http"),
        ("ftp", "http"),
        ("https://evil.example/", "http"),
        ("", "http"),
    ],
)
def test_only_http_and_https_are_accepted_as_forwarded_scheme(
    service: Service, forwarded: str | None, scheme: str
) -> None:
    """Without PUBLIC_URL, X-Forwarded-Proto sets the scheme of addresses if it is http or https; `Vary` names it."""
    headers = {} if forwarded is None else {"X-Forwarded-Proto": forwarded}
    reply = service.create_anonymous_client().get("/.well-known/oauth-authorization-server", headers=headers)
    host = service.url.partition("://")[2]
    assert {reply.json()[name].partition(host)[0] for name in ("issuer", "token_endpoint")} == {f"{scheme}://"}
    assert reply.headers["vary"].lower() == "x-forwarded-proto"
