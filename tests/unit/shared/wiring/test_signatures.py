"""Tests of electronic signatures over both kinds of stores."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.auth.sign_ins import SignIn
from shared.catalog.document import load_document
from shared.catalog.signature_models import SignaturePolicy
from shared.errors import WorkspaceError
from shared.provenance.amendments import AmendmentPolicy
from shared.provenance.models import AmendmentBody
from shared.provenance.ports import ChainKey, Target
from shared.provenance.signatures import DecisionSigner
from shared.settings import Settings
from shared.signatures.ports import SignatureFilter
from shared.signatures.sign_ins import SignInRegistry
from shared.signatures.signing import SigningRequest
from shared.wiring import Services
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.wiring.azure import deployment

CHAIN = ChainKey(Target.DOMAIN_AMENDMENTS, "line 1")
POLICY = AmendmentPolicy(approval_required=True, reason_text_required=False, reason_categories=("other",))
BODY = AmendmentBody.model_validate(
    {
        "ScopeKey": "line 1",
        "EntityType": "Sample",
        "EntityID": "S-1",
        "OriginalRecord": {"ph": 7},
        "AmendedRecord": {"ph": 7.4},
        "ChangedFields": ["ph"],
        "ReasonCategory": "other",
        "ReasonText": "",
    }
)


@pytest.fixture(params=["embedded", "azure"])
async def services(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Services]:
    """Provide the services of a process, once with embedded stores and once with Azure stores."""
    async with AsyncExitStack() as stack:
        if request.param == "azure":
            built = (await stack.enter_async_context(deployment())).services()
        else:
            built = Services(Settings.read({"DATA_DIR": str(tmp_path)}))
        stack.push_async_callback(built.close)
        await built.provenance.catalog_service.apply(load_document(PLANT, "test"), "apply")
        yield built


def build_signer(services: Services, sign_in: str = "s1", at: datetime | None = None) -> DecisionSigner:
    """Return a signer for a member who signed in at ``at`` or has just signed in; each sign-in may sign once."""
    signed_in = SignIn((at or datetime.now(UTC)).replace(microsecond=0), ("key",), sign_in)
    principal = Principal("bob", "bob", "Bob", frozenset(), CredentialKind.JWT, "t1", None, sign_in=signed_in)
    policy = SignaturePolicy.model_validate({"maxAgeSeconds": 0})
    return services.signatures.signing.build_signer(
        SigningRequest(principal, "Bob", policy, {"meaning": "approval"}, is_rejection=False)
    )


async def test_a_sign_in_can_sign_one_amendment(services: Services) -> None:
    """A sign-in can be used to sign one amendment; the fifth rejected attempt to use it again locks the member out."""
    amendments = services.provenance.amendments
    for _ in range(2):
        await amendments.create(CHAIN, "ann", BODY, POLICY)
    decided = await amendments.approve(CHAIN, "000000000001", "bob", signer=build_signer(services))
    for _ in range(5):
        with pytest.raises(WorkspaceError) as used:
            await amendments.approve(CHAIN, "000000000002", "bob", signer=build_signer(services))
        assert used.value.code == "SIGNATURE_TOKEN_USED"
    with pytest.raises(WorkspaceError) as locked:
        await amendments.approve(CHAIN, "000000000002", "bob", signer=build_signer(services, "s2"))
    assert locked.value.code == "SIGNATURE_LOCKED"
    page = await services.signatures.list.list_signatures(SignatureFilter("bob"), "", 10)
    [listed] = [one.content for one in page.signatures]
    assert (listed["recordID"], listed["scopeKey"]) == (f"{decided.record.sequence:012d}", "line 1")
    assert (await services.provenance.verifier.verify(CHAIN)).chain_valid
    access = await services.provenance.chain_store.read(ChainKey(Target.ACCESS_CONTROL), 0, limit=100, max_bytes=10**6)
    actions = [record.projection["ActionType"] for record in access.records]
    assert actions.count("Signature.Suspicious") == 1


@pytest.mark.parametrize("seconds", [0, 5])
async def test_a_sign_in_that_signed_nothing_remains_free(
    services: Services, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """If the decision of the first attempt is stored late, the sign-in of the repeat can sign another decision.

    Sign-ins of one member in the same second count as one, because a decision contains only the time of its sign-in.
    """
    amendments, reserve, now = services.provenance.amendments, SignInRegistry.reserve_sign_in, datetime.now(UTC)
    for _ in range(2):
        await amendments.create(CHAIN, "ann", BODY, POLICY)
    first = build_signer(services, "s1", now - timedelta(seconds=seconds))

    async def reserve_and_store_late_decision(
        sign_ins: SignInRegistry, name: str, append_id: str, at: ChainKey
    ) -> None:
        await reserve(sign_ins, name, append_id, at)
        monkeypatch.setattr(SignInRegistry, "reserve_sign_in", reserve)
        await amendments.approve(CHAIN, "000000000001", "bob", append_id="A", signer=first)

    monkeypatch.setattr(SignInRegistry, "reserve_sign_in", reserve_and_store_late_decision)
    second = build_signer(services, "s2", now)
    repeat = await amendments.approve(CHAIN, "000000000001", "bob", append_id="A", signer=second)
    assert repeat.repeated
    with nullcontext() if seconds else pytest.raises(WorkspaceError, match="sign in again for each signature"):
        await amendments.approve(CHAIN, "000000000002", "bob", append_id="B", signer=second)
