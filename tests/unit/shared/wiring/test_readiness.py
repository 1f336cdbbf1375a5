"""Tests of the readiness probe, which requires that all configured stores respond."""

import asyncio
import logging
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from shared.catalog.document import load_document
from shared.wiring import Services
from tests.azurite.running import find_missing_requirement
from tests.unit.shared.wiring.azure import Deployment, deployment

PLAIN = "workspace: {id: plant-t, name: Plant}\nteam: [{id: admin@t, name: A, role: Admin}]\n"
AUDITED = f"{PLAIN}policies: {{provenance: {{}}}}\n"


async def succeed_check() -> None:
    """Do nothing, like a readiness check of a store that responds."""


@pytest.fixture
async def azure_deployment() -> AsyncIterator[Deployment]:
    """Return an emulated deployment without a workspace."""
    if find_missing_requirement():
        pytest.skip(find_missing_requirement())
    async with deployment() as running:
        yield running


@pytest.fixture
async def services(azure_deployment: Deployment) -> AsyncIterator[Services]:
    """Return the deployment's services with a fake query engine."""
    wired = azure_deployment.services()
    wired.queries.__dict__["engine"] = SimpleNamespace(ping=succeed_check, close=succeed_check)
    wired.readiness.cache_seconds = 0
    yield wired
    await wired.close()


def list_failing_stores(log: pytest.LogCaptureFixture) -> set[str]:
    return {record.__dict__["fields"]["store"] for record in log.records if record.message == "not ready"}


async def test_the_service_is_ready_while_every_store_responds(services: Services) -> None:
    """A deployment is ready with or without a workspace document, and with or without provenance."""
    assert await services.readiness.list_failing_dependencies() == []
    for text in (PLAIN, AUDITED):
        await services.provenance.catalog_service.apply(load_document(text, "test"), "apply")
        assert await services.readiness.list_failing_dependencies() == []


async def test_failing_store_is_logged(
    azure_deployment: Deployment, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    """If Key Vault or Cosmos DB fails, the service is not ready and logs the store's name."""
    await services.provenance.catalog_service.apply(load_document(AUDITED, "test"), "apply")
    caplog.set_level(logging.WARNING)
    azure_deployment.vault.down = True
    assert (
        set(await services.readiness.list_failing_dependencies())
        == list_failing_stores(caplog)
        == {"token key", "checkpoints"}
    )
    azure_deployment.vault.down = False
    assert await services.readiness.list_failing_dependencies() == []
    caplog.clear()
    await asyncio.to_thread(azure_deployment.cosmos.stop)
    assert set(await services.readiness.list_failing_dependencies()) == list_failing_stores(caplog) >= {"audit log"}
