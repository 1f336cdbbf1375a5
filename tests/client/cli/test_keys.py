"""Tests of the commands for API keys, with a fake service behind the HTTP client."""

import httpx
import pytest
from oi import Workspace
from oi.cli import keys
from oi.cli.main import execute

_KEY = {"keyId": "k", "principal": "editor@t", "apiKey": "oik_k_secret"}


def open_workspace_with(monkeypatch: pytest.MonkeyPatch, *answers: httpx.Response | Exception) -> list[httpx.Request]:
    """Let the commands connect to a fake service that sends these replies; return the list of its requests."""
    waiting, requests = list(answers), []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        answer = waiting.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def open_workspace(*_scopes: str) -> Workspace:
        workspace = Workspace("http://127.0.0.1:1", token="jwt")
        client = httpx.Client(base_url="http://127.0.0.1:1", transport=httpx.MockTransport(reply_to_request))
        workspace.telemetry._transport.client = client
        return workspace

    monkeypatch.setattr(keys, "open_workspace", open_workspace)
    monkeypatch.setattr("oi._sync.transport.sleep", lambda _seconds: None)
    return requests


@pytest.mark.parametrize(
    "first", [httpx.ReadError("lost"), httpx.Response(503, json={"code": "CREDENTIALS_UNAVAILABLE"})]
)
def test_a_key_whose_creation_is_repeated_is_created_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], first: httpx.Response | Exception
) -> None:
    """The command repeats the creation of a key with the same Idempotency-Key, so that the service creates one key."""
    requests = open_workspace_with(monkeypatch, first, httpx.Response(201, json=_KEY))
    assert execute(["keys", "create", "report"]) == 0
    sent = {each.headers["idempotency-key"] for each in requests}
    assert (len(requests), len(sent)) == (2, 1)
    assert capsys.readouterr().out == "oik_k_secret\n"


def test_an_unknown_outcome_has_the_exit_code_of_an_unreachable_service(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it is unknown whether a key was created, the command says so and exits with 3, not as after a refusal."""
    error = {"code": "CREDENTIALS_UNAVAILABLE", "detail": "The store does not respond."}
    open_workspace_with(monkeypatch, *(httpx.Response(503, json=error) for _ in range(5)))
    assert execute(["keys", "create", "report"]) == 3
    assert "the change may have been made" in capsys.readouterr().err


def test_a_key_with_the_name_of_a_folder_is_not_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is sent for the key id `..`, because HTTP removes such a segment from the path."""
    requests = open_workspace_with(monkeypatch)
    assert (execute(["keys", "revoke", ".."]), requests) == (1, [])
