"""Test of the setting PUBLIC_URL."""

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
