"""Tests of electronic signatures with STORES=azure over emulators; the workspace command runs as another process."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.commands import workspace
from tests.unit.functions.azure_plant import ADMIN, AMENDMENTS, EDITOR, EVENTS, QUALITY, SAMPLE, Instance
from tests.unit.shared.wiring.azure import Deployment

SCOPE = "line-1"
APPROVAL = {"meaning": "approval"}
POLICY = "signatures: {amendments: required, queries: required, maxAgeSeconds: 0}"
SIGNED = SAMPLE.read_text(encoding="utf-8").replace("policies:\n", f"policies:\n  {POLICY}\n", 1)

type Apply = Callable[[str], str]
type ApplyText = Callable[[str], Any]


@pytest.fixture
def apply_document_text(azure_deployment: Deployment, tmp_path: Path) -> ApplyText:
    """Return a function that applies a workspace document in another process."""

    async def apply_document(text: str) -> None:
        file = tmp_path / "signed.yaml"
        file.write_text(text, encoding="utf-8")
        arguments = ["apply", str(file), "--as", ADMIN]
        assert await asyncio.to_thread(workspace.main, arguments, azure_deployment.services) == workspace.DONE

    return apply_document


@pytest.fixture
async def api_keys(apply_sample_document: Apply) -> dict[str, str]:
    """Apply the sample document and return an API key for each member."""
    return {member: await asyncio.to_thread(apply_sample_document, member) for member in (ADMIN, EDITOR, QUALITY)}


async def create_amendment(app: Instance, token: str) -> dict[str, Any]:
    """Create a pending amendment and return it."""
    body = {
        "ScopeKey": SCOPE,
        "EntityType": "Batch",
        "EntityID": "B-1",
        "ReasonCategory": "other",
        "OriginalRecord": {"kg": 10},
        "AmendedRecord": {"kg": 11},
        "ChangedFields": ["kg"],
        "ReasonText": "typo",
    }
    created = await app.request("POST", AMENDMENTS, token, body)
    assert created.body["Status"] == "pending"
    return dict(created.body)


async def approve_amendment(
    app: Instance, amendment: dict[str, Any], token: str, signature: Any = APPROVAL, **headers: str
) -> Any:
    """Approve an amendment and return the reply."""
    body = {} if signature is None else {"signature": signature}
    address = f"{AMENDMENTS}/{amendment['RecordID']}/approve?scopeKey={SCOPE}"
    return await app.request("POST", address, token, body, **headers)


def get_status_and_code(reply: Any) -> tuple[int, str]:
    """Return the status and the error code of a reply."""
    return reply.status, reply.body.get("code", "")


async def test_a_token_signs_one_amendment(
    start_instance: Callable[[], Instance], api_keys: dict[str, str], apply_document_text: ApplyText
) -> None:
    """The token of a sign-in signs one amendment; a repeated request gets the first reply; misuse locks the member."""
    await apply_document_text(SIGNED)
    app = start_instance()
    author, signer = await app.issue_token(api_keys[EDITOR]), await app.issue_token(api_keys[QUALITY])
    first, second = [await create_amendment(app, author) for _ in range(2)]
    assert get_status_and_code(
        await approve_amendment(app, first, signer, {"meaning": "rejection"}, idempotency_key="a1")
    ) == (
        400,
        "SIGNATURE_MEANING_INVALID",
    )
    decided = await approve_amendment(app, first, signer, idempotency_key="a1")
    assert decided.status == 200, decided.body
    signature = decided.body["Signature"]
    assert (signature["PrintedName"], signature["AuthMethods"]) == ("Quality assurance", ["key"])
    assert (signature["RecordHash"], signature["SignedAt"]) == (first["Hash"], decided.body["ApprovedAt"])
    other = start_instance()
    assert (await approve_amendment(other, first, signer, idempotency_key="a1")).body == decided.body
    replies = await asyncio.gather(*(approve_amendment(other, second, signer) for _ in range(5)))
    assert {get_status_and_code(reply) for reply in replies} == {(409, "SIGNATURE_TOKEN_USED")}
    locked = await approve_amendment(other, second, await other.issue_token(api_keys[QUALITY]))
    assert get_status_and_code(locked) == (429, "SIGNATURE_LOCKED")
    assert 0 < int(locked.headers["Retry-After"]) <= 900
    found = await other.request("GET", f"{EVENTS}/query?target=AccessControl&actionType=Signature.Suspicious", author)
    assert [(event["UserID"], event["AfterState"]["attempts"]) for event in found.body] == [(QUALITY, 5)]
    verdict = await other.request("POST", f"{EVENTS}/verify?target=DomainAmendments", author, {"ScopeKey": SCOPE})
    assert verdict.body["ChainValid"] is True


async def test_one_of_simultaneous_signatures_with_one_token_succeeds(
    start_instance: Callable[[], Instance], api_keys: dict[str, str], apply_document_text: ApplyText
) -> None:
    """If the token of one sign-in signs several amendments at the same time, exactly one request succeeds."""
    await apply_document_text(SIGNED)
    app = start_instance()
    author, signer = await app.issue_token(api_keys[EDITOR]), await app.issue_token(api_keys[QUALITY])
    amendments = [await create_amendment(app, author) for _ in range(4)]
    replies = await asyncio.gather(*(approve_amendment(app, each, signer) for each in amendments))
    assert sorted(map(get_status_and_code, replies)) == [(200, ""), *[(409, "SIGNATURE_TOKEN_USED")] * 3]


async def test_member_changes_by_another_process_apply_at_once(
    start_instance: Callable[[], Instance], api_keys: dict[str, str], apply_document_text: ApplyText
) -> None:
    """A signature uses the signer's current policy, name and rights, not those of a cached catalog."""
    app = start_instance()
    admin, editor, quality = [await app.issue_token(api_keys[member]) for member in (ADMIN, EDITOR, QUALITY)]
    of_editor, of_admin = await create_amendment(app, editor), await create_amendment(app, admin)
    renamed = SIGNED.replace("name: Quality assurance", "name: Grace Adams")
    await apply_document_text(renamed.replace(", rights: [Workspace.Amendment.Approve]", ""))
    assert get_status_and_code(await approve_amendment(app, of_editor, quality, None)) == (400, "SIGNATURE_REQUIRED")
    assert (await approve_amendment(app, of_editor, quality)).body["Signature"]["PrintedName"] == "Grace Adams"
    assert get_status_and_code(await approve_amendment(app, of_admin, editor)) == (403, "ACCESS_RIGHT_MISSING")
    await apply_document_text(renamed.replace("name: Grace Adams", "name: Grace Adams\n    enabled: false"))
    assert get_status_and_code(await approve_amendment(app, of_admin, quality)) == (401, "UNAUTHENTICATED")


async def test_signed_query_approvals_are_listed(
    start_instance: Callable[[], Instance], api_keys: dict[str, str], apply_document_text: ApplyText
) -> None:
    """A signed approval of a query is stored and listed with its hash and statement, like a signed amendment."""
    await apply_document_text(SIGNED)
    app = start_instance()
    editor, quality = await app.issue_token(api_keys[EDITOR]), await app.issue_token(api_keys[QUALITY])
    draft = {"name": "Mine", "surface": "cooling", "kql": "Telemetry | count"}
    assert (await app.request("PUT", "/oi-api/warm-queries/mine", editor, draft)).status == 201
    address = "/oi-api/warm-queries/mine/approve"
    assert get_status_and_code(await app.request("POST", address, quality)) == (400, "SIGNATURE_REQUIRED")
    body = {"signature": {**APPROVAL, "statement": "Looks right, é."}}
    query = await app.request("POST", address, quality, body, idempotency_key="q1")
    assert query.status == 200, query.body
    assert (await app.request("POST", address, quality, body, idempotency_key="q1")).body == query.body
    second = await create_amendment(app, editor)
    assert get_status_and_code(await approve_amendment(app, second, quality)) == (409, "SIGNATURE_TOKEN_USED")
    decided = await approve_amendment(app, second, await app.issue_token(api_keys[QUALITY]))
    for instance in (app, start_instance()):
        listed = (await instance.request("GET", "/oi-api/provenance/signatures", editor)).body["signatures"]
        assert [(one["target"], one["scopeKey"]) for one in listed] == [
            ("DomainAmendments", SCOPE),
            ("PlatformConfig", None),
        ]
        assert {name: listed[0][name] for name in decided.body["Signature"]} == decided.body["Signature"]
        assert listed[1]["RecordHash"] == query.body["approval"]["signature"]["recordHash"]
        assert listed[1]["Statement"] == "Looks right, é."
