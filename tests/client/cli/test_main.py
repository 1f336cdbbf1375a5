"""Tests of the exit codes of the command ``oi``, with a fake service behind the HTTP client."""

import httpx
import pytest
from oi import Workspace
from oi.cli import session
from oi.cli.main import execute


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (httpx.Response(502, text="<html>"), 3),
        (httpx.Response(503, text="<html>"), 3),
        (httpx.Response(504, text="<html>"), 3),
        (httpx.Response(504, json={"code": "QUERY_TIMEOUT", "detail": "Too slow."}), 1),
        (httpx.Response(500, text="<html>"), 1),
        (httpx.Response(404, json={"code": "ROUTE_NOT_FOUND", "detail": "No."}), 1),
    ],
)
def test_a_proxy_that_does_not_reach_the_service_is_not_a_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], reply: httpx.Response, code: int
) -> None:
    """If a proxy replies for a stopped service, the command exits with 3; an error of the service exits with 1."""

    def open_workspace(*_scopes: str) -> Workspace:
        workspace = Workspace("http://127.0.0.1:1", token="jwt")
        client = httpx.Client(base_url="http://127.0.0.1:1", transport=httpx.MockTransport(lambda _request: reply))
        workspace._transport.client = client
        return workspace

    monkeypatch.setattr(session, "open_workspace", open_workspace)
    monkeypatch.setattr("oi._sync.transport.sleep", lambda _seconds: None)
    assert execute(["whoami"]) == code
    assert capsys.readouterr().err.startswith("error: ")
