"""Tests of electronic signatures over both kinds of stores."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
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


def build_signer(services: Services, sign_in: str = "s1") -> DecisionSigner:
    """Return a signer for a member who has just signed in; each sign-in may sign once."""
    signed_in = SignIn(datetime.now(UTC).replace(microsecond=0), ("key",), sign_in)
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
