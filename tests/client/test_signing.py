"""Tests of signed decisions with the client library and the command `oi`, with a fake service."""

import io
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from oi import SignInError, Workspace
from oi.cli.main import execute
from oi.requests import build_signature_property

URL = "https://plant.example"
PATH = "/oi-api/provenance/amendments/000000000007/approve"
APPROVE = ["amendments", "approve", "000000000007", "--scope", "line-1"]
SIGNED = [*APPROVE, "--meaning", "approval", "--statement", "I checked it."]
DRAFT = {"lookup": "newest", "name": "Newest", "surface": "hall", "kql": "print 7", "etag": '"7"', "approval": None}
APPROVE_QUERY = ["query", "approve", "newest"]


class Terminal(io.StringIO):
    """Standard input of a command that a person executes in a terminal."""

    def isatty(self) -> bool:
        """Return that the input is a terminal."""
        return True


class Service:
    """Fake service that accepts signatures only with one of several API keys."""

    def __init__(self) -> None:
        self.fresh = "oik_typed"
        self.refusal = (401, "REAUTHENTICATION_REQUIRED")
        self.principals = {"oik_typed": "ann@plant", "oik_stored": "ann@plant", "oik_other": "bob@plant"}
        self.requests: list[tuple[str, str, Any]] = []
        self.scopes: list[str | None] = []
        self.paths: list[str] = []
        self.conditions: list[str | None] = []
        self.definition: dict[str, Any] = DRAFT

    def reply_to_request(self, request: httpx.Request) -> httpx.Response:
        """Reply to a request; the token that the fake service issues for an API key equals the key."""
        credential = request.headers["authorization"].removeprefix("Bearer ")
        path = request.url.path
        if path == "/workspace/api/keys/jwt":
            self.scopes.append(request.url.params.get("scopes"))
            expires = datetime.now(UTC) + timedelta(hours=1)
            return httpx.Response(200, json={"Token": credential, "ExpiresAt": expires.isoformat()})
        if path == "/workspace/api/keys/whoami":
            return httpx.Response(200, json={"principal": self.principals.get(credential, "ann@plant")})
        if path == "/oi-api/provenance/signatures":
            self.scopes.append(request.url.params.get("userId"))
            number = int(request.url.params.get("cursor", "1"))
            signature = {"SignedAt": f"2026-05-0{number}", "PrintedName": "Ann", "Meaning": "review", "UserID": "ann@p"}
            return httpx.Response(200, json={"signatures": [signature], "cursor": "2" if number == 1 else None})
        if path == "/oi-api/warm-queries":
            return httpx.Response(200, json={"warmQueries": [self.definition]})
        self.paths.append(request.url.raw_path.decode())
        self.conditions.append(request.headers.get("if-match"))
        body = json.loads(request.content or "null")
        self.requests.append((credential, path, body))
        if credential != self.fresh:
            status, code = self.refusal
            problem = {"code": code, "detail": "Reason.", "allowed": ["approval", "review"]}
            return httpx.Response(status, json=problem)
        is_deletion = request.method == "DELETE"
        return httpx.Response(204) if is_deletion else httpx.Response(200, json={"RecordID": "000000000008"})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    """Return the fake service, to which all clients of the test connect."""
    fake = Service()
    opened = partial(httpx.Client, transport=httpx.MockTransport(fake.reply_to_request))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", opened)
    monkeypatch.setenv("OI_URL", URL)
    monkeypatch.setenv("OI_KEY", "oik_stored")
    monkeypatch.delenv("OI_TOKEN", raising=False)
    return fake


def provide_key(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """Provide an API key on the command's standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{key}\n"))


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "REAUTHENTICATION_REQUIRED"), (409, "SIGNATURE_TOKEN_USED"), (403, "DELEGATED_TOKEN")],
)
def test_a_decision_is_signed_with_the_key_that_is_typed_again(
    service: Service, status: int, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the sign-in is too old to sign, the command reads an API key and sends the decision again."""
    service.refusal = (status, code)
    provide_key(monkeypatch, "oik_typed")
    assert execute(SIGNED) == 0
    body = {"signature": {"meaning": "approval", "statement": "I checked it."}}
    assert service.requests == [("oik_stored", PATH, body), ("oik_typed", PATH, body)]
    assert service.scopes == [None, "Workspace.Amendment.Approve"]
    shown = capsys.readouterr()
    assert "000000000007 is approved" in shown.out
    assert "Enter your API key" in shown.err
    assert "oik_" not in shown.out + shown.err


def test_another_persons_key_cannot_sign(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the typed API key belongs to another person than the signed-in user, the command rejects it."""
    service.fresh = "oik_other"
    provide_key(monkeypatch, "oik_other")
    assert execute(SIGNED) == 1
    assert len(service.requests) == 1
    assert "The API key belongs to bob@plant, but ann@plant is signed in" in capsys.readouterr().err


def test_a_decision_is_not_repeated_without_a_typed_key(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an API key on standard input, a rejected decision is not repeated."""
    provide_key(monkeypatch, "")
    assert execute(SIGNED) == 2
    assert len(service.requests) == 1


@pytest.mark.parametrize("code", ["SIGNATURE_REQUIRED", "SIGNATURE_MEANING_INVALID"])
def test_the_error_lists_the_allowed_meanings_of_a_signature(
    service: Service, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the meaning of a signature is missing or not allowed, the output names the option and the allowed values."""
    service.refusal = (400, code)
    assert execute(APPROVE) == 1
    assert "Sign with --meaning (one of: approval, review)." in capsys.readouterr().err
    assert service.requests[0][2] == {}


def test_errors_that_a_new_sign_in_cannot_solve_request_no_key(service: Service) -> None:
    """If a new sign-in would not help, the command ends and does not ask for the API key."""
    service.refusal = (403, "SIGNATURE_NOT_PERSONAL")
    assert execute(SIGNED) == 1
    assert len(service.requests) == 1


def test_a_signature_statement_without_a_meaning_is_rejected(service: Service) -> None:
    """The command rejects ``--statement`` without ``--meaning``, because only a decision with a meaning is signed."""
    assert execute([*APPROVE, "--statement", "I checked it."]) == 2
    assert not service.requests
    with pytest.raises(ValueError, match="meaning"):
        build_signature_property(None, "I checked it.")


def test_queries_and_rejections_are_signed(service: Service) -> None:
    """Decisions about queries and rejections of amendments can be signed."""
    service.fresh = "oik_stored"
    assert execute([*APPROVE_QUERY, "--if-match", '"7"', "--meaning", "review"]) == 0
    assert execute(["query", "reject", "newest", "--comment", "No.", "--meaning", "rejection"]) == 0
    reject = ["amendments", "reject", "000000000007", "--scope", "line-1", "--reason", "No.", "--meaning", "rejection"]
    assert execute(reject) == 0
    assert [body for _, _, body in service.requests] == [
        {"signature": {"meaning": "review"}},
        {"comment": "No.", "signature": {"meaning": "rejection"}},
        {"RejectionReason": "No.", "signature": {"meaning": "rejection"}},
    ]


def test_decisions_without_a_meaning_are_not_signed(service: Service) -> None:
    """A decision without a meaning is sent unsigned."""
    service.fresh = "oik_stored"
    assert execute([*APPROVE_QUERY, "--if-match", '"7"']) == 0
    assert execute(APPROVE) == 0
    assert [body for _, _, body in service.requests] == [None, {}]


@pytest.mark.parametrize(("answer", "exit_code", "conditions"), [("y", 0, ['"7"', '"7"']), ("n", 1, [])])
def test_the_command_approves_only_the_draft_that_it_showed(
    service: Service,
    answer: str,
    exit_code: int,
    conditions: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a terminal, the command shows the draft, asks, and sends the ETag of this draft, also with another key."""
    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    monkeypatch.setattr("oi.cli.signing._read_api_key_of_signer", lambda: "oik_typed")
    assert execute([*APPROVE_QUERY, "--meaning", "approval", "--json"]) == exit_code
    assert service.conditions == conditions
    shown = capsys.readouterr()
    assert 'Newest (newest), surface hall, draft\n  ETag "7"\nprint 7\n' in shown.err
    assert "print 7" not in shown.out


@pytest.mark.parametrize(
    ("decision", "state", "credential", "exit_code"),
    [
        ({"approval": {"approvedBy": "bob@plant"}}, "approved by bob@plant", "oik_stored", 0),
        ({"rejection": {"rejectedBy": "bob@plant"}}, "rejected draft", "oik_typed", 1),
    ],
)
def test_the_command_does_not_ask_if_no_draft_waits_for_approval(
    service: Service,
    decision: dict[str, Any],
    state: str,
    credential: str,
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For a query that is approved or rejected, the command does not ask; the reply decides the exit code."""
    service.definition = {**DRAFT, **decision}
    service.fresh, service.refusal = credential, (409, "WARM_QUERY_REJECTED")
    monkeypatch.setattr("sys.stdin", Terminal())
    assert execute(APPROVE_QUERY) == exit_code
    assert service.conditions == ['"7"']
    shown = capsys.readouterr().err
    assert f"newest has no draft that waits for approval: {state}\n" in shown
    assert "Approve this draft?" not in shown


def test_changes_of_a_query_can_depend_on_its_etag(service: Service, tmp_path: Path) -> None:
    """Commands and library send the ETag with which the caller has read the query; without one, no condition."""
    service.fresh = "oik_stored"
    definition = tmp_path / "query.json"
    definition.write_text("{}")
    put, reject = ["query", "put", "newest", str(definition)], ["query", "reject", "newest", "--comment", "No."]
    for command in (put, reject, [*APPROVE_QUERY]):
        assert execute([*command, "--if-match", '"7"']) == 0
    assert execute(put) == execute(reject) == execute(APPROVE_QUERY) == 0
    with Workspace(URL, key="oik_stored") as workspace:
        workspace.queries.delete("newest", etag='"7"')
    assert service.conditions == ['"7"', '"7"', '"7"', None, None, None, '"7"']


def test_a_program_with_a_stored_key_does_not_sign_in_again(service: Service) -> None:
    """If a signature needs a new sign-in, the library raises an error.

    It does not sign in again with its stored key.
    """
    with Workspace(URL, key="oik_stored") as workspace, pytest.raises(SignInError) as refused:
        workspace.amendments.approve("line-1", "000000000007", meaning="approval")
    assert refused.value.code == "REAUTHENTICATION_REQUIRED"
    assert len(service.requests) == len(service.scopes) == 1


def test_all_signatures_are_listed(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """`oi audit signatures` reads all pages, and prints name, time and meaning of each signature."""
    assert execute(["audit", "signatures", "--user-id", "ann@p"]) == 0
    shown = capsys.readouterr().out
    for part in ("2026-05-01", "2026-05-02", "Ann", "review"):
        assert part in shown
    assert service.scopes == [None, "ann@p", "ann@p"]
    assert execute(["audit", "signatures", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["signatures"]) == 2


def test_an_id_is_percent_encoded_as_one_path_segment(service: Service) -> None:
    """An id with characters that have a meaning in URLs is encoded as one segment of the path."""
    service.fresh = "oik_stored"
    assert execute(["amendments", "approve", "../7?a=1#b", "--scope", "line-1"]) == 0
    assert service.paths[-1] == "/oi-api/provenance/amendments/..%2F7%3Fa%3D1%23b/approve?scopeKey=line-1"
