"""Tests of the rate limits of callers, and of the stores of idempotency keys."""

from shared.auth.principals import CredentialKind, Principal
from shared.catalog.document import load_document
from shared.wiring import Services
from tests.unit.shared.catalog.documents import PLANT

CALLER = Principal("ann", "ann", "Ann", frozenset(), CredentialKind.JWT, "t1", None)


async def test_the_tier_limits_concurrent_requests(local_services: Services) -> None:
    """A request counts as concurrent until its reply is complete; each caller has limits of its own."""
    limited = PLANT + "tier: enterprise\nlimits: {requestsPerMinute: 600, concurrent: 1}\n"
    await local_services.provenance.catalog_service.apply(load_document(limited, "test"), "apply")
    async with local_services.rate_limits.admit(CALLER) as first:
        assert first.rejection is None
        async with local_services.rate_limits.admit(CALLER) as second:
            assert second.rejection is not None
    async with local_services.rate_limits.admit(CALLER) as third:
        assert third.rejection is None


def list_store_classes(services: Services) -> list[str]:
    """Return the class names of the stores for idempotency keys and for their replies."""
    idempotency = services.idempotency
    return [type(part._store).__name__ for part in (idempotency.keys, idempotency.replies)]


def test_the_setting_stores_selects_the_idempotency_stores(local_services: Services, azure_services: Services) -> None:
    """The setting STORES selects the stores; idempotency keys and their replies are in stores of the same kind."""
    assert list_store_classes(local_services) == ["SqliteIdempotencyStore", "SqliteReplyStore"]
    assert list_store_classes(azure_services) == ["CosmosIdempotencyStore", "CosmosReplyStore"]
