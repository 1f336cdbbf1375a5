"""Tests of electronic signatures for decisions about amendments and warm queries, over HTTP."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest
import rfc8785

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until
from tests.service.oauth_client import OAuthClient
from tests.service.test_amendments import AMENDMENTS, create_amendment
from tests.service.test_entra import AUDIENCE, TENANT, Provider
from tests.service.test_webhooks import create_webhook, wait_for_event
from tests.webhook_receiver import run_receiver

NUMBERS = count(1)
NAMES = ("locked", "leaving", "given", "once", "busy", "single", "maker", "heir", "victim", "moving", "second")
"""Names of approvers whose signatures are refused, so that no refusal of another test locks them out."""

ACCOUNTS = {
    name: f"aaaaaaaa-0000-0000-0000-{number:012d}" for number, name in enumerate(("account", "guest", "killed"))
}
"""Object ids of the approvers who sign in with Entra ID."""

APPROVAL = {"meaning": "approval"}
REJECTION = {"meaning": "rejection"}
SCOPE = "signatures"


@pytest.fixture(scope="module")
def entra() -> Iterator[Provider]:
    """Return a running OpenID provider that plays the role of Entra ID."""
    running = Provider()
    yield running
    running.close()


@pytest.fixture(scope="module")
def signing_service(entra: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service whose workspace requires signatures and has additional approvers."""
    folder = tmp_path_factory.mktemp("signatures")
    workspace = folder / "workspace.yaml"
    approvers = [f"  - {{id: {name}@t, name: {name.title()}, role: Admin}}" for name in NAMES]
    approvers += [f"  - {{id: {name}@t, name: A, role: Admin, oid: {oid}}}" for name, oid in ACCOUNTS.items()]
    text = WORKSPACE.read_text(encoding="utf-8").replace("team:\n", "\n".join(("team:", *approvers, "")))
    workspace.write_text(text, encoding="utf-8")
    environment = {"ENTRA_TENANT_ID": TENANT, "ENTRA_AUDIENCE": AUDIENCE, "ENTRA_AUTHORITY": entra.url}
    own = Service(folder / "data", workspace, environment).start()
    replace_signature_policy(own.create_client("admin@t"), amendments="required", queries="required")
    yield own
    own.stop()


@pytest.fixture
def service_requiring_signatures(signing_service: Service) -> Iterator[Service]:
    """Return the service with signatures required; after the test, restore the initial signature policy."""
    yield signing_service
    replace_signature_policy(signing_service.create_client("admin@t"), amendments="required", queries="required")


def replace_signature_policy(admin: httpx.Client, **properties: Any) -> None:
    """Replace the signature policy of the workspace."""
    workspace = admin.get("/oi-api/workspace").json()
    policies = {**workspace["policies"], "signatures": properties}
    assert admin.put("/oi-api/workspace", json={"name": workspace["name"], "policies": policies}).status_code == 200


def create_member_key(admin: httpx.Client, member: str) -> str:
    """Create an API key for the given member on behalf of the administrator, and return it."""
    reply = admin.post("/workspace/api/keys", json={"name": "test", "principal": member})
    assert reply.status_code == 201, reply.text
    return str(reply.json()["apiKey"])


def sign_in(service: Service, key: str, **parameters: Any) -> httpx.Client:
    """Return a client whose token was issued with the given API key or token."""
    with service.create_anonymous_client(bearer=key) as client:
        reply = client.get("/workspace/api/keys/jwt", params=parameters)
        assert reply.status_code == 200, reply.text
    return service.create_anonymous_client(bearer=reply.json()["Token"])


def read_bearer_token(client: httpx.Client) -> str:
    """Return the token of a client."""
    return client.headers["Authorization"].removeprefix("Bearer ")


def propose_amendment(service: Service) -> str:
    """Create an amendment and return its RecordID."""
    reply = create_amendment(service.create_client("editor@t"), SCOPE, EntityID=f"B-{next(NUMBERS)}")
    assert (reply.status_code, reply.json()["Status"]) == (201, "pending")
    return str(reply.json()["RecordID"])


def send_decision(
    client: httpx.Client, amendment: str, signature: Any = APPROVAL, verb: str = "approve", **headers: str
) -> Any:
    """Approve or reject an amendment and return the reply."""
    body = {} if signature is None else {"signature": signature}
    return client.post(
        f"{AMENDMENTS}/{amendment}/{verb}", params={"scopeKey": SCOPE}, json=body, headers=headers or None
    )


def parse_time(text: str) -> datetime:
    """Parse the time of a record, which has microseconds and the zone Z."""
    assert len(text) == len("2026-01-05T08:00:00.000000Z")
    return datetime.fromisoformat(text)


def test_a_signed_approval_contains_the_signature(service_requiring_signatures: Service) -> None:
    """A signed approval contains a signature with the name, the meaning, the times and the Hash of the amendment."""
    created = create_amendment(
        service_requiring_signatures.create_client("editor@t"), SCOPE, EntityID="signed-approval"
    ).json()
    statement = "Checked against the logbook, é."
    reply = send_decision(
        service_requiring_signatures.create_client("admin@t"),
        created["RecordID"],
        {"meaning": "review", "statement": statement},
    )
    assert reply.status_code == 200, reply.text
    decision = reply.json()
    signature = decision["Signature"]
    assert signature | {"AuthTime": "", "SignedAt": ""} == {
        "UserID": "admin@t",
        "PrintedName": "Administrator",
        "Meaning": "review",
        "Statement": statement,
        "SignedAt": "",
        "AuthTime": "",
        "AuthMethods": ["key"],
        "RecordHash": created["Hash"],
    }
    assert signature["SignedAt"] == decision["ApprovedAt"]
    age = parse_time(signature["SignedAt"]) - parse_time(signature["AuthTime"])
    assert timedelta(0) <= age < timedelta(minutes=1)
    assert decision["Meaning"] == "approval"
    verdict = service_requiring_signatures.create_client("admin@t").post(
        "/oi-api/provenance/events/verify", params={"target": "DomainAmendments"}, json={"ScopeKey": SCOPE}
    )
    assert verdict.json()["ChainValid"] is True


def test_a_signed_rejection_has_the_meaning_rejection(service_requiring_signatures: Service) -> None:
    """A signed rejection has the meaning `rejection`, and the statement null if none was sent."""
    reply = send_decision(
        service_requiring_signatures.create_client("admin@t"),
        propose_amendment(service_requiring_signatures),
        REJECTION,
        "reject",
    )
    assert reply.status_code == 200, reply.text
    signature = reply.json()["Signature"]
    assert (signature["Meaning"], signature["Statement"]) == ("rejection", None)
    assert signature["SignedAt"] == reply.json()["RejectedAt"]


def test_amendments_are_pending_if_signatures_are_required(service_requiring_signatures: Service) -> None:
    """If signatures are required, each new amendment is pending, even without `requireApproval`."""
    admin = service_requiring_signatures.create_client("admin@t")
    workspace = admin.get("/oi-api/workspace").json()
    policies = {**workspace["policies"], "provenance": {"requireApproval": False}}
    try:
        body = {"name": workspace["name"], "policies": policies}
        assert admin.put("/oi-api/workspace", json=body).status_code == 200
        propose_amendment(service_requiring_signatures)
    finally:
        admin.put("/oi-api/workspace", json={"name": workspace["name"], "policies": workspace["policies"]})


@pytest.mark.parametrize(
    ("signature", "verb", "code", "fields"),
    [
        (None, "approve", "SIGNATURE_REQUIRED", ["signature"]),
        ({"meaning": "rejection"}, "approve", "SIGNATURE_MEANING_INVALID", ["signature.meaning"]),
        ({"meaning": "approval"}, "reject", "SIGNATURE_MEANING_INVALID", ["signature.meaning"]),
        ({"meaning": "Approval"}, "approve", "SIGNATURE_MEANING_INVALID", ["signature.meaning"]),
        ({}, "approve", "SIGNATURE_MEANING_INVALID", ["signature.meaning"]),
        ({"meaning": []}, "approve", "SIGNATURE_MEANING_INVALID", ["signature.meaning"]),
        ("approval", "approve", "INVALID_REQUEST", ["signature"]),
        ({**APPROVAL, "statement": "x" * 1001}, "approve", "INVALID_REQUEST", ["signature.statement"]),
        ({**APPROVAL, "statement": 1}, "approve", "INVALID_REQUEST", ["signature.statement"]),
        ({**APPROVAL, "Meaning": "review"}, "approve", "INVALID_REQUEST", ["signature.Meaning"]),
    ],
)
def test_invalid_signatures_are_rejected(
    service_requiring_signatures: Service, signature: Any, verb: str, code: str, fields: list[str]
) -> None:
    """An invalid signature is rejected with the names of its invalid fields, and the amendment stays pending."""
    amendment, admin = (
        propose_amendment(service_requiring_signatures),
        service_requiring_signatures.create_client("admin@t"),
    )
    reply = send_decision(admin, amendment, signature, verb)
    assert check_failing_fields(reply, code=code) == fields
    if code == "SIGNATURE_MEANING_INVALID":
        assert reply.json()["allowed"] == (["rejection"] if verb == "reject" else ["approval", "review"])
    assert send_decision(admin, amendment).status_code == 200


def test_the_length_of_a_signature_statement_is_limited(service_requiring_signatures: Service) -> None:
    """The statement of a signature may have at most 1,000 characters."""
    reply = send_decision(
        service_requiring_signatures.create_client("admin@t"),
        propose_amendment(service_requiring_signatures),
        {**APPROVAL, "statement": "é" * 1000},
    )
    assert reply.json()["Signature"]["Statement"] == "é" * 1000


def test_other_errors_have_priority_over_signature_errors(service_requiring_signatures: Service) -> None:
    """If a decision is impossible for a reason besides its signature, the error reports that reason."""
    amendment, admin = (
        propose_amendment(service_requiring_signatures),
        service_requiring_signatures.create_client("admin@t"),
    )
    check_problem(
        send_decision(service_requiring_signatures.create_client("editor@t"), amendment, None),
        403,
        "ACCESS_RIGHT_MISSING",
    )
    check_problem(send_decision(admin, "000000009999", None), 404, "AMENDMENT_NOT_FOUND")
    own = create_amendment(admin, SCOPE, EntityID="own").json()["RecordID"]
    check_problem(send_decision(admin, own, None), 403, "MAKER_CHECKER_VIOLATION")
    assert send_decision(admin, amendment).status_code == 200
    check_problem(send_decision(admin, amendment, None), 409, "AMENDMENT_NOT_PENDING")


def test_an_optional_signature_is_checked_and_stored(service_requiring_signatures: Service) -> None:
    """A signature that the policy does not require is checked and stored in the same way as a required signature."""
    admin = service_requiring_signatures.create_client("admin@t")
    amendments = [propose_amendment(service_requiring_signatures) for _ in range(2)]
    replace_signature_policy(admin, meanings=["release"])
    check_problem(send_decision(admin, amendments[0], {"meaning": "review"}), 400, "SIGNATURE_MEANING_INVALID")
    assert send_decision(admin, amendments[0], {"meaning": "release"}).json()["Signature"]["Meaning"] == "release"
    assert "Signature" not in send_decision(admin, amendments[1], None).json()


def test_the_signature_policy_at_the_time_of_a_decision_applies(service_requiring_signatures: Service) -> None:
    """The signature policy at the time of a decision determines whether the decision needs a signature."""
    admin, amendment = (
        service_requiring_signatures.create_client("admin@t"),
        propose_amendment(service_requiring_signatures),
    )
    replace_signature_policy(admin)
    replace_signature_policy(admin, amendments="required")
    check_problem(send_decision(admin, amendment, None), 400, "SIGNATURE_REQUIRED")


def test_a_signature_contains_the_name_at_the_time_of_signing(service_requiring_signatures: Service) -> None:
    """A signature contains the name that the member had when signing, even after the member is renamed."""
    admin = service_requiring_signatures.create_client("admin@t")
    signer = sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("admin@t"))
    amendments = [propose_amendment(service_requiring_signatures) for _ in range(2)]
    before = send_decision(signer, amendments[0]).json()
    member = admin.get("/oi-api/team/admin@t").json()
    renamed = {"name": "Ada Adams", "role": member["role"]}
    assert admin.put("/oi-api/team/admin@t", json=renamed).status_code == 200
    try:
        assert send_decision(signer, amendments[1]).json()["Signature"]["PrintedName"] == "Ada Adams"
        stored = admin.get(AMENDMENTS, params={"scopeKey": SCOPE, "fromSequence": int(before["RecordID"])}).json()[-1]
        assert (stored["RecordID"], stored["Signature"]["PrintedName"]) == (before["RecordID"], "Administrator")
    finally:
        admin.put("/oi-api/team/admin@t", json={"name": member["name"], "role": member["role"]})


def test_a_token_of_a_key_that_another_person_created_cannot_sign(service_requiring_signatures: Service) -> None:
    """A token cannot sign if another person created its API key; such attempts do not lock the member out."""
    key = create_member_key(service_requiring_signatures.create_client("admin@t"), "given@t")
    signer, amendment = sign_in(service_requiring_signatures, key), propose_amendment(service_requiring_signatures)
    for _ in range(6):
        check_problem(send_decision(signer, amendment), 403, "SIGNATURE_NOT_PERSONAL")
    inherited = sign_in(service_requiring_signatures, read_bearer_token(signer))
    check_problem(send_decision(inherited, amendment), 403, "SIGNATURE_NOT_PERSONAL")


def test_a_token_issued_with_a_token_has_the_same_sign_in(service_requiring_signatures: Service) -> None:
    """A token that is issued with another token has the same sign-in and can sign; OAuth tokens cannot sign."""
    key, right = service_requiring_signatures.read_api_key("admin@t"), "Workspace.Amendment.Approve"
    first = sign_in(service_requiring_signatures, key)
    second = sign_in(service_requiring_signatures, read_bearer_token(first))
    signed = send_decision(second, propose_amendment(service_requiring_signatures)).json()["Signature"]
    assert parse_time(signed["AuthTime"]).timestamp() == read_claims(first)["auth_time"]
    oauth, amendment = (
        OAuthClient(service_requiring_signatures, "admin@t"),
        propose_amendment(service_requiring_signatures),
    )
    tokens = oauth.redeem_code(oauth.approve_and_read_code([right], scope=right)).json()
    renewed = oauth.refresh_tokens(tokens["refresh_token"]).json()
    for each in (tokens, renewed):
        delegated = service_requiring_signatures.create_anonymous_client(bearer=each["access_token"])
        check_problem(send_decision(delegated, amendment), 403, "DELEGATED_TOKEN")
    form = {"grant_type": "client_credentials", "client_id": key.split("_")[1], "client_secret": key}
    unattended = service_requiring_signatures.create_anonymous_client(
        bearer=oauth.post_form(form).json()["access_token"]
    )
    check_problem(send_decision(unattended, amendment), 401, "REAUTHENTICATION_REQUIRED")
    assert send_decision(first, amendment).status_code == 200


def test_with_max_age_0_a_member_can_sign_one_decision_after_each_sign_in(
    service_requiring_signatures: Service,
) -> None:
    """With maxAgeSeconds 0, a member can sign one decision after each sign-in, whichever of its tokens is used."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=0
    )
    signer = sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("once@t"))
    heir = sign_in(service_requiring_signatures, read_bearer_token(signer))
    amendments = [propose_amendment(service_requiring_signatures) for _ in range(2)]
    assert send_decision(signer, amendments[0]).status_code == 200
    check_problem(send_decision(heir, amendments[1]), 409, "SIGNATURE_TOKEN_USED")
    assert (
        send_decision(
            sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("once@t")), amendments[1]
        ).status_code
        == 200
    )


def test_one_of_simultaneous_signatures_after_one_sign_in_succeeds(service_requiring_signatures: Service) -> None:
    """If several decisions are signed at once with tokens of one sign-in, exactly one succeeds."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=0
    )
    signer = sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("busy@t"))
    amendments = [propose_amendment(service_requiring_signatures) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(lambda each: send_decision(signer, each), amendments))
    assert sorted(reply.status_code for reply in replies) == [200, 409, 409]
    assert {reply.json().get("code") for reply in replies} == {None, "SIGNATURE_TOKEN_USED"}


def test_a_rejected_decision_does_not_use_up_its_sign_in(service_requiring_signatures: Service) -> None:
    """If a signed decision is rejected, the member can sign another decision without a new sign-in."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=0
    )
    signer, amendment = (
        sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("admin@t")),
        propose_amendment(service_requiring_signatures),
    )
    check_problem(send_decision(signer, "000000009999"), 404, "AMENDMENT_NOT_FOUND")
    check_problem(send_decision(signer, amendment, None), 400, "SIGNATURE_REQUIRED")
    assert send_decision(signer, amendment).status_code == 200


def test_repeated_decisions_get_the_first_reply(service_requiring_signatures: Service) -> None:
    """A repeated request with the same Idempotency-Key gets the first successful reply; rejections are not stored."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=0
    )
    signer, amendment = (
        sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("admin@t")),
        propose_amendment(service_requiring_signatures),
    )
    key = {"Idempotency-Key": f"signed-{amendment}"}
    check_problem(send_decision(signer, amendment, {"meaning": "rejection"}, **key), 400, "SIGNATURE_MEANING_INVALID")
    first = send_decision(signer, amendment, **key)
    assert first.status_code == 200, first.text
    assert send_decision(signer, amendment, **key).json() == first.json()
    # A token of another sign-in, and one that proves no sign-in, get the same reply.
    assert send_decision(service_requiring_signatures.create_client("admin@t"), amendment, **key).json() == first.json()
    api_key = service_requiring_signatures.read_api_key("admin@t")
    form = {"grant_type": "client_credentials", "client_id": api_key.split("_")[1], "client_secret": api_key}
    unattended = (
        service_requiring_signatures.create_anonymous_client().post("/oauth2/token", data=form).json()["access_token"]
    )
    assert (
        send_decision(service_requiring_signatures.create_anonymous_client(bearer=unattended), amendment, **key).json()
        == first.json()
    )


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_repeated_decisions_about_queries_get_the_stored_reply(
    service_requiring_signatures: Service, verb: str
) -> None:
    """For decisions about queries, a repeated request gets the stored reply; a rejected signature is not stored."""
    replace_signature_policy(service_requiring_signatures.create_client("admin@t"), queries="required", maxAgeSeconds=0)
    signer, lookup = (
        sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("heir@t")),
        store_draft_query(service_requiring_signatures),
    )
    used = store_draft_query(service_requiring_signatures)
    assert signer.post(f"{QUERIES}/{used}/approve", json={"signature": APPROVAL}).status_code == 200
    body: dict[str, Any] = {"signature": APPROVAL}
    if verb == "reject":
        body = {"comment": "No.", "signature": REJECTION}
    key = {"Idempotency-Key": f"{verb}-{lookup}"}
    address = f"{QUERIES}/{lookup}/{verb}"
    check_problem(signer.post(address, json=body, headers=key), 409, "SIGNATURE_TOKEN_USED")
    renewed = sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("heir@t"))
    first = renewed.post(address, json=body, headers=key)
    assert first.status_code == 200, first.text
    assert signer.post(address, json=body, headers=key).json() == first.json()


def test_a_repeated_decision_after_a_kill_gets_the_first_reply(
    service_requiring_signatures: Service, entra: Provider
) -> None:
    """If the service is killed after a signed decision, a repeat gets the first reply; the sign-in counts as used."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"),
        amendments="required",
        queries="required",
        maxAgeSeconds=0,
    )
    amendments, lookup = (
        [propose_amendment(service_requiring_signatures) for _ in range(2)],
        store_draft_query(service_requiring_signatures),
    )
    # The clock of Entra ID may be ahead, so this sign-in is still recent after a slow start of the service.
    auth_time = int(datetime.now(UTC).timestamp()) + 100
    account = entra.create_token(oid=ACCOUNTS["killed"], auth_time=auth_time)
    key, token = (
        {"Idempotency-Key": f"killed-{lookup}"},
        read_bearer_token(sign_in(service_requiring_signatures, account)),
    )
    first = send_decision(
        service_requiring_signatures.create_anonymous_client(bearer=token), amendments[0], **key
    ).json()
    service_requiring_signatures.kill()
    service_requiring_signatures.start()
    signer = service_requiring_signatures.create_anonymous_client(bearer=token)
    assert send_decision(signer, amendments[0], **key).json() == first
    check_problem(send_decision(signer, amendments[1]), 409, "SIGNATURE_TOKEN_USED")
    reply = signer.post(f"{QUERIES}/{lookup}/approve", json={"signature": APPROVAL})
    check_problem(reply, 409, "SIGNATURE_TOKEN_USED")


def test_attempts_with_keys_of_another_creator_do_not_lock_the_member_out(
    service_requiring_signatures: Service,
) -> None:
    """Rejected attempts with an API key that another person created do not count towards the lock-out of the member."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=0
    )
    stranger = sign_in(
        service_requiring_signatures,
        create_member_key(service_requiring_signatures.create_client("admin@t"), "victim@t"),
    )
    amendment = propose_amendment(service_requiring_signatures)
    own_key = stranger.post("/workspace/api/keys", json={"name": "made by the stranger"}).json()["apiKey"]
    form = {"grant_type": "client_credentials", "client_id": own_key.split("_")[1], "client_secret": own_key}
    unattended = service_requiring_signatures.create_anonymous_client(
        bearer=service_requiring_signatures.create_anonymous_client()
        .post("/oauth2/token", data=form)
        .json()["access_token"]
    )
    for _ in range(6):
        for client in (stranger, sign_in(service_requiring_signatures, own_key)):
            check_problem(send_decision(client, amendment), 403, "SIGNATURE_NOT_PERSONAL")
        check_problem(send_decision(unattended, amendment), 401, "REAUTHENTICATION_REQUIRED")
    assert (
        send_decision(
            sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("victim@t")), amendment
        ).status_code
        == 200
    )


def test_the_fifth_rejected_attempt_locks_the_member_out(service_requiring_signatures: Service) -> None:
    """After five rejected attempts, a member cannot sign; an audit event and a webhook event report the lock-out."""
    with run_receiver() as receiver:
        webhook = create_webhook(
            service_requiring_signatures.create_client("admin@t"),
            receiver,
            "/locked",
            eventTypes=["signature.suspicious"],
        )
        check_lock_out(service_requiring_signatures)
        data = wait_for_event(receiver, "/locked", "signature.suspicious").verify(webhook["secret"])["data"]
    assert (data["userId"], data["attempts"], set(data)) == ("locked@t", 5, {"userId", "attempts", "since"})


def check_lock_out(service_requiring_signatures: Service) -> None:
    """Cause the lock-out of a member with rejected signatures, and check the rejection and the audit event."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=0
    )
    signer, amendment = (
        service_requiring_signatures.create_client("locked@t"),
        propose_amendment(service_requiring_signatures),
    )
    assert send_decision(signer, propose_amendment(service_requiring_signatures)).status_code == 200
    for _ in range(5):
        check_problem(send_decision(signer, amendment), 409, "SIGNATURE_TOKEN_USED")
    locked = send_decision(service_requiring_signatures.create_client("locked@t"), amendment, None)
    check_problem(locked, 429, "SIGNATURE_LOCKED")
    assert 800 < int(locked.headers["Retry-After"]) <= 900
    parameters = {"target": "AccessControl", "actionType": "Signature.Suspicious"}
    [event] = (
        service_requiring_signatures.create_client("admin@t")
        .get("/oi-api/provenance/events/query", params=parameters)
        .json()
    )
    assert (event["UserID"], event["EntityID"], event["AfterState"]["attempts"]) == ("locked@t", "locked@t", 5)
    assert send_decision(service_requiring_signatures.create_client("admin@t"), amendment).status_code == 200


def test_rejected_key_creations_count_as_attempts(service_requiring_signatures: Service) -> None:
    """Creating an API key is rejected if the sign-in is too old; each further rejection counts as a failed attempt."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=1
    )
    maker = service_requiring_signatures.create_client("maker@t")
    wait_until(lambda: has_recent_sign_in(maker), lambda recent: not recent)
    for _ in range(6):
        reply = maker.post("/workspace/api/keys", json={"name": "mine"})
        check_problem(reply, 401, "REAUTHENTICATION_REQUIRED")
    check_problem(
        send_decision(
            service_requiring_signatures.create_client("maker@t"), propose_amendment(service_requiring_signatures)
        ),
        429,
        "SIGNATURE_LOCKED",
    )


@pytest.mark.parametrize(
    ("change", "is_accepted"),
    [
        (lambda at: at, True),
        (lambda at: at + 110, True),
        (lambda at: at - 200, True),
        (lambda at: at + 600, False),
        (lambda at: at - 301, False),
        (lambda at: at * 1_000, False),
        (str, False),
        (lambda _: True, False),
        (lambda _: None, False),
    ],
    ids=["now", "little ahead", "recent", "future", "old", "milliseconds", "text", "true", "missing"],
)
def test_a_signature_has_time_and_methods_of_the_entra_id_sign_in(
    service_requiring_signatures: Service, entra: Provider, change: Callable[[int], Any], *, is_accepted: bool
) -> None:
    """A signature has the time and methods of the Entra ID sign-in; an old, future or malformed time is rejected."""
    auth_time = change(int(datetime.now(UTC).timestamp()))
    account = entra.create_token(oid=ACCOUNTS["account"], auth_time=auth_time, amr=["pwd", "mfa"])
    reply = send_decision(
        sign_in(service_requiring_signatures, account), propose_amendment(service_requiring_signatures)
    )
    if not is_accepted:
        check_problem(reply, 401, "REAUTHENTICATION_REQUIRED")
        return
    signature = reply.json()["Signature"]
    assert (signature["UserID"], signature["AuthMethods"]) == ("account@t", ["pwd", "mfa"])
    assert parse_time(signature["AuthTime"]).timestamp() == auth_time


def test_one_entra_id_sign_in_allows_one_signature(service_requiring_signatures: Service, entra: Provider) -> None:
    """With maxAgeSeconds 0, a member can sign one decision after each Entra ID sign-in, whichever token is used."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=0
    )
    at, amendments = (
        int(datetime.now(UTC).timestamp()),
        [propose_amendment(service_requiring_signatures) for _ in range(2)],
    )
    first, second, next_sign_in, old = (
        sign_in(service_requiring_signatures, entra.create_token(oid=ACCOUNTS["guest"], uti=uti, auth_time=auth_time))
        for uti, auth_time in (("1", at), ("2", at), ("3", at + 60), ("4", at - 120))
    )
    assert send_decision(first, amendments[0]).status_code == 200
    check_problem(send_decision(second, amendments[1]), 409, "SIGNATURE_TOKEN_USED")
    challenged = send_decision(old, amendments[1])
    check_problem(challenged, 401, "REAUTHENTICATION_REQUIRED")
    assert challenged.headers["WWW-Authenticate"].endswith(" max_age=0")
    assert send_decision(next_sign_in, amendments[1]).status_code == 200


def test_signatures_cannot_be_required_without_an_audit_log(service_requiring_signatures: Service) -> None:
    """A workspace without a provenance policy cannot require signatures."""
    admin = service_requiring_signatures.create_client("admin@t")
    workspace = admin.get("/oi-api/workspace").json()
    policies = {**workspace["policies"], "provenance": None}
    reply = admin.put("/oi-api/workspace", json={"name": workspace["name"], "policies": policies})
    assert set(check_failing_fields(reply)) >= {"policies.signatures.amendments"}


def test_an_old_sign_in_cannot_sign(service_requiring_signatures: Service) -> None:
    """A decision with a token of an old or unknown sign-in is rejected with the challenge of RFC 9470."""
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"), amendments="required", maxAgeSeconds=1
    )
    signer, amendment = (
        service_requiring_signatures.create_client("admin@t"),
        propose_amendment(service_requiring_signatures),
    )
    reply = wait_until(
        lambda: send_decision(
            signer, amendment, {**APPROVAL, "statement": 1} if has_recent_sign_in(signer) else APPROVAL
        ),
        lambda each: each.status_code == 401,
    )
    check_problem(reply, 401, "REAUTHENTICATION_REQUIRED")
    challenge = 'Bearer error="insufficient_user_authentication", max_age=1'
    assert reply.headers["WWW-Authenticate"] == challenge


def has_recent_sign_in(client: httpx.Client) -> bool:
    """Return whether the sign-in of a client's token is at most one second old."""
    return datetime.now(UTC).timestamp() - float(read_claims(client)["auth_time"]) <= 1


def read_claims(client: httpx.Client) -> dict[str, Any]:
    """Return the claims of a client's token."""
    claims = client.headers["Authorization"].split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))))


def test_a_member_without_the_right_cannot_sign(service_requiring_signatures: Service) -> None:
    """A member who has lost the right to decide cannot sign, even if the sign-in was before the loss."""
    admin, amendment = (
        service_requiring_signatures.create_client("admin@t"),
        propose_amendment(service_requiring_signatures),
    )
    signer = service_requiring_signatures.create_client("moving@t")
    assert admin.put("/oi-api/team/moving@t", json={"name": "Moving", "role": "Editor"}).status_code == 200
    check_problem(send_decision(signer, amendment), 403, "ACCESS_RIGHT_MISSING")


def test_a_disabled_member_cannot_sign(service_requiring_signatures: Service) -> None:
    """A disabled member cannot sign, even if the sign-in was before the member was disabled."""
    admin, amendment = (
        service_requiring_signatures.create_client("admin@t"),
        propose_amendment(service_requiring_signatures),
    )
    signer = service_requiring_signatures.create_client("leaving@t")
    body = {"name": "Leaving", "role": "Admin", "enabled": False}
    assert admin.put("/oi-api/team/leaving@t", json=body).status_code == 200
    check_problem(send_decision(signer, amendment), 401, "UNAUTHENTICATED")


QUERIES = "/oi-api/warm-queries"


def store_draft_query(service: Service) -> str:
    """Store a draft query and return its lookup (id in URLs)."""
    lookup = f"signed-{next(NUMBERS)}"
    body = {
        "name": lookup,
        "surface": "hall",
        "kql": "Telemetry | where DeviceId == device | count",
        "parameters": [{"name": "device", "type": "string", "default": ""}],
    }
    assert service.create_client("editor@t").put(f"{QUERIES}/{lookup}", json=body).status_code == 201
    return lookup


def find_approval(admin: httpx.Client, lookup: str) -> dict[str, Any]:
    """Return the only audit event about the approval of a query."""
    parameters = {"target": "PlatformConfig", "actionType": "Catalog.WarmQuery.Approved"}
    events = admin.get("/oi-api/provenance/events/query", params=parameters).json()
    [event] = [one for one in events if one["EntityID"] == lookup]
    return dict(event)


def test_the_approval_of_a_query_is_signed(service_requiring_signatures: Service) -> None:
    """The approval of a query contains a signature over its text and parameters, as does the audit event."""
    admin, lookup = (
        service_requiring_signatures.create_client("admin@t"),
        store_draft_query(service_requiring_signatures),
    )
    check_problem(admin.post(f"{QUERIES}/{lookup}/approve"), 400, "SIGNATURE_REQUIRED")
    reply = admin.post(f"{QUERIES}/{lookup}/approve", json={"signature": {**APPROVAL, "statement": "Looks right."}})
    assert reply.status_code == 200, reply.text
    query = reply.json()
    signature = query["approval"]["signature"]
    signed = {"kql": query["kql"], "parameters": query["parameters"]}
    assert signature | {"authTime": "", "signedAt": ""} == {
        "userId": "admin@t",
        "printedName": "Administrator",
        "meaning": "approval",
        "statement": "Looks right.",
        "signedAt": "",
        "authTime": "",
        "authMethods": ["key"],
        "recordHash": hashlib.sha256(rfc8785.dumps(signed)).hexdigest(),
    }
    assert signature["signedAt"] == query["approval"]["approvedAt"]
    event = find_approval(admin, lookup)
    assert (event["UserID"], event["AfterState"]["approval"]) == ("admin@t", query["approval"])
    # A repeat changes nothing, so it needs no signature; the definition can be sent back as it is.
    assert admin.post(f"{QUERIES}/{lookup}/approve").json() == query
    listed = {one["lookup"]: one for one in admin.get(QUERIES).json()["warmQueries"]}
    assert listed[lookup]["approval"] == query["approval"]
    members = " ".join(signature)
    document = f'{{ query(name: "{lookup}") {{ approval {{ approvedBy approvedAt signature {{ {members} }} }} }} }}'
    shown = admin.post("/v1/plant-t/graphql", json={"query": document}).json()
    assert shown == {"data": {"query": {"approval": query["approval"]}}}


def test_another_signature_of_an_approved_query_is_rejected(service_requiring_signatures: Service) -> None:
    """A signature of an approved query that is not the stored one is rejected before it is checked."""
    admin, lookup = (
        service_requiring_signatures.create_client("admin@t"),
        store_draft_query(service_requiring_signatures),
    )
    address, body = f"{QUERIES}/{lookup}/approve", {"signature": APPROVAL}
    approved = admin.post(address, json=body)
    assert approved.status_code == 200, approved.text
    # A retry after a lost reply needs no new sign-in.
    assert admin.post(address, json=body).json() == approved.json()
    other = sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("second@t"))
    for signature in ("yes", REJECTION, APPROVAL):
        check_problem(other.post(address, json={"signature": signature}), 409, "WARM_QUERY_APPROVED")
    assert find_approval(admin, lookup)["AfterState"]["approval"] == approved.json()["approval"]


def test_the_rejection_of_a_query_is_signed(service_requiring_signatures: Service) -> None:
    """The rejection of a draft query contains its signature."""
    admin, lookup = (
        service_requiring_signatures.create_client("admin@t"),
        store_draft_query(service_requiring_signatures),
    )
    body = {"comment": "Pressure must be in bar."}
    check_problem(admin.post(f"{QUERIES}/{lookup}/reject", json=body), 400, "SIGNATURE_REQUIRED")
    wrong = {**body, "signature": APPROVAL}
    check_problem(admin.post(f"{QUERIES}/{lookup}/reject", json=wrong), 400, "SIGNATURE_MEANING_INVALID")
    rejection = admin.post(f"{QUERIES}/{lookup}/reject", json={**body, "signature": REJECTION}).json()["rejection"]
    assert rejection["signature"]["meaning"] == "rejection"
    assert rejection["signature"]["signedAt"] == rejection["rejectedAt"]


def test_other_errors_of_query_decisions_have_priority_over_signature_errors(
    service_requiring_signatures: Service,
) -> None:
    """If a decision about a query is impossible for a reason besides its signature, the error reports that reason."""
    admin, lookup = (
        service_requiring_signatures.create_client("admin@t"),
        store_draft_query(service_requiring_signatures),
    )
    check_problem(admin.post(f"{QUERIES}/unknown-1/approve"), 404, "WARM_QUERY_NOT_FOUND")
    stale = admin.post(f"{QUERIES}/{lookup}/approve", headers={"If-Match": '"stale"'})
    check_problem(stale, 412, "PRECONDITION_FAILED")
    check_problem(admin.post(f"{QUERIES}/{lookup}/approve", json={"sign": 1}), 400, "INVALID_REQUEST")


def test_with_max_age_0_a_member_can_sign_one_query_decision_after_each_sign_in(
    service_requiring_signatures: Service,
) -> None:
    """With maxAgeSeconds 0, a member can sign only one decision after each sign-in, about a query or an amendment.

    A repeated request with the same Idempotency-Key gets the first reply.
    """
    replace_signature_policy(
        service_requiring_signatures.create_client("admin@t"),
        queries="required",
        amendments="required",
        maxAgeSeconds=0,
    )
    lookup, signer = (
        store_draft_query(service_requiring_signatures),
        sign_in(service_requiring_signatures, service_requiring_signatures.read_api_key("single@t")),
    )
    body, key = {"signature": APPROVAL}, {"Idempotency-Key": f"approve-{lookup}"}
    first = signer.post(f"{QUERIES}/{lookup}/approve", json=body, headers=key)
    assert first.status_code == 200, first.text
    assert signer.post(f"{QUERIES}/{lookup}/approve", json=body, headers=key).json() == first.json()
    check_problem(send_decision(signer, propose_amendment(service_requiring_signatures)), 409, "SIGNATURE_TOKEN_USED")
    other = store_draft_query(service_requiring_signatures)
    check_problem(signer.post(f"{QUERIES}/{other}/approve", json=body), 409, "SIGNATURE_TOKEN_USED")


def test_a_document_with_signed_approvals_plans_no_change(service_requiring_signatures: Service) -> None:
    """An exported document with signed approvals plans no change.

    If a document contains such an approval for a new query, the approval is ignored.
    """
    admin, lookup = (
        service_requiring_signatures.create_client("admin@t"),
        store_draft_query(service_requiring_signatures),
    )
    assert admin.post(f"{QUERIES}/{lookup}/approve", json={"signature": APPROVAL}).status_code == 200
    document = admin.get("/oi-api/workspace/document").json()
    plan = admin.post("/oi-api/workspace/document/plan", json=document)
    assert (plan.status_code, plan.json()["changes"]) == (200, []), plan.text
    [signed] = [query for query in document["warmQueries"] if query["lookup"] == lookup]
    for approval in (signed["approval"], {"approvedBy": "admin@t", "approvedAt": "2026-01-05T08:00:00Z"}):
        new = {**signed, "lookup": "declared", "name": "declared", "approval": approval}
        changed = {**document, "warmQueries": [*document["warmQueries"], new]}
        [change] = admin.post("/oi-api/workspace/document/plan", json=changed).json()["changes"]
        assert (change["key"], change["after"]["approval"]) == ("declared", None)


SIGNATURES = "/oi-api/provenance/signatures"


def test_signatures_are_listed_newest_first(service_requiring_signatures: Service) -> None:
    """The list contains each signature of a decision about an amendment or a query, newest first."""
    admin, lookup = (
        service_requiring_signatures.create_client("admin@t"),
        store_draft_query(service_requiring_signatures),
    )
    first = send_decision(admin, propose_amendment(service_requiring_signatures)).json()
    query = admin.post(f"{QUERIES}/{lookup}/approve", json={"signature": APPROVAL}).json()["approval"]["signature"]
    last = send_decision(admin, propose_amendment(service_requiring_signatures), REJECTION, "reject").json()
    parameters = {"from": first["Signature"]["SignedAt"], "userId": "admin@t"}
    reply = service_requiring_signatures.create_client("viewer@t").get(SIGNATURES, params=parameters)
    assert reply.status_code == 200, reply.text
    newest, of_query, oldest = reply.json()["signatures"]
    place = {"target": "DomainAmendments", "scopeKey": SCOPE}
    assert newest == {**last["Signature"], **place, "recordID": last["RecordID"]}
    assert oldest == {**first["Signature"], **place, "recordID": first["RecordID"]}
    event = find_approval(admin, lookup)
    assert (of_query["target"], of_query["scopeKey"], of_query["recordID"]) == (
        "PlatformConfig",
        None,
        event["RecordID"],
    )
    assert {name[0].lower() + name[1:]: of_query[name] for name in first["Signature"] if name != "UserID"} | {
        "userId": of_query["UserID"]
    } == query


def test_signatures_are_listed_in_pages(service_requiring_signatures: Service) -> None:
    """The list of signatures has pages; its time range includes the start and excludes the end."""
    admin = service_requiring_signatures.create_client("admin@t")
    signed = [
        send_decision(admin, propose_amendment(service_requiring_signatures)).json()["Signature"]["SignedAt"]
        for _ in range(3)
    ]
    window = {"from": signed[0], "to": signed[2]}
    page = admin.get(SIGNATURES, params={**window, "limit": 1}).json()
    assert [one["SignedAt"] for one in page["signatures"]] == [signed[1]]
    rest = admin.get(SIGNATURES, params={**window, "limit": 1, "cursor": page["cursor"]}).json()
    assert ([one["SignedAt"] for one in rest["signatures"]], rest["cursor"]) == ([signed[0]], None)
    assert admin.get(SIGNATURES, params={"userId": "nobody@t"}).json() == {"signatures": [], "cursor": None}
    other = {"limit": 1, "cursor": page["cursor"]}
    assert check_failing_fields(admin.get(SIGNATURES, params=other)) == ["cursor"]


@pytest.mark.parametrize(
    ("parameters", "fields"),
    [
        ({"limit": "0"}, ["limit"]),
        ({"limit": "x"}, ["limit"]),
        ({"cursor": "x"}, ["cursor"]),
        ({"cursor": "x", "from": "yesterday", "userId": ""}, ["userId", "from", "cursor"]),
        ({"from": "yesterday", "to": "2026-01-05T08:00:00"}, ["from", "to"]),
        ({"from": "2026-01-06T00:00:00Z", "to": "2026-01-05T00:00:00Z"}, ["from"]),
        ({"userId": ""}, ["userId"]),
        ({"user": "admin@t"}, ["user"]),
    ],
)
def test_invalid_parameters_of_the_signature_list_are_rejected(
    service_requiring_signatures: Service, parameters: dict[str, str], fields: list[str]
) -> None:
    """Invalid and unknown parameters of the list of signatures are rejected."""
    assert (
        check_failing_fields(service_requiring_signatures.create_client("viewer@t").get(SIGNATURES, params=parameters))
        == fields
    )


@pytest.mark.parametrize("writer", ["editor@t", "admin@t"])
def test_forged_signature_events_are_not_listed(service_requiring_signatures: Service, writer: str) -> None:
    """The list of signatures leaves out an audit event that a member wrote in the form of a signed approval."""
    admin, lookup = (
        service_requiring_signatures.create_client("admin@t"),
        store_draft_query(service_requiring_signatures),
    )
    admin.post(f"{QUERIES}/{lookup}/approve", json={"signature": APPROVAL})
    event = find_approval(admin, lookup)
    forged = {name: event[name] for name in ("ActionType", "EntityType", "EntityID", "AfterState")}
    forged["AfterState"]["approval"]["signature"]["printedName"] = "Another Name"
    written = service_requiring_signatures.create_client(writer).post(
        "/oi-api/provenance/events", params={"target": "PlatformConfig"}, json=forged
    )
    assert written.status_code == 201, written.text
    listed = admin.get(SIGNATURES, params={"limit": "1000"}).json()["signatures"]
    of_queries = [one["recordID"] for one in listed if one["target"] == "PlatformConfig"]
    assert event["RecordID"] in of_queries
    assert written.json()["RecordID"] not in of_queries
