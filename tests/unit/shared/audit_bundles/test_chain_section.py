"""Tests of the files of one chain in an audit bundle."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.audit_bundles.bundle_file import BundleFile
from shared.audit_bundles.chain_section import ChainSection, ChainSources
from shared.catalog.document import load_document
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import ChainKey, Filters, Target
from shared.settings import Settings
from shared.wiring import Services

CHAIN = ChainKey(Target.DOMAIN_EVENTS, "hall")
DOCUMENT = """
workspace: {id: plant-t, name: Test plant}
tier: enterprise
limits: {requestsPerMinute: 1000, concurrent: 10}
policies: {provenance: {requireApproval: true}}
team:
  - {id: ann@t, name: Ann, role: Admin}
"""


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    """Return the services of a new workspace."""
    made = Services(Settings.read({"DATA_DIR": str(tmp_path)}))
    await made.provenance.catalog_service.apply(load_document(DOCUMENT, "workspace"), "apply")
    yield made
    await made.close()


async def _append_event(services: Services, name: str) -> None:
    event = {"EntityType": "Test", "EntityID": "1", "ActionType": "Test", "Name": name}
    await services.provenance.audit_log.append(CHAIN.target, "ann@t", event, append_id=name, scope_key=CHAIN.scope_key)


async def _write_section(services: Services, folder: Path) -> dict[str, Any]:
    provenance, runtime = services.provenance, services.runtime
    sources = ChainSources(
        provenance.chain_store,
        provenance.checkpoints,
        provenance.verifier,
        provenance.receipts.roots,
        provenance.chain_overview,
        runtime,
    )

    async def continue_build() -> None:
        pass

    with BundleFile(folder / "bundle.zip", runtime) as file:
        return await ChainSection(sources, CHAIN, Filters(), 1, continue_build).write(file)


async def test_a_bundle_has_no_records_that_were_added_after_the_signature_of_an_empty_chain(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the first record of a chain is added while a bundle signs the chain, the bundle states that it is empty."""
    load_current = services.provenance.checkpoints.load_current

    async def load_then_append(chain: ChainKey) -> Any:
        try:
            return await load_current(chain)
        finally:
            await _append_event(services, "first")

    monkeypatch.setattr(services.provenance.checkpoints, "load_current", load_then_append)
    entry = await _write_section(services, tmp_path)
    assert (entry["records"], entry["checkpoint"], entry["proof"]) == (0, None, None)
    assert (entry["verdict"]["Empty"], entry["verdict"]["Reason"]) == (True, "nothing to check")


async def test_a_bundle_has_the_records_of_a_chain_that_cannot_be_signed(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If a chain cannot be signed, the bundle has its records and its last checkpoint, but no proof."""
    await _append_event(services, "first")
    await services.provenance.checkpoints.create(CHAIN)
    await _append_event(services, "second")

    async def refuse(chain: ChainKey) -> None:
        raise WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", f"{chain.target} differs from its checkpoint.")

    monkeypatch.setattr(services.provenance.checkpoints, "create", refuse)
    entry = await _write_section(services, tmp_path)
    assert (entry["records"], entry["checkpoint"], entry["proof"]) == (2, "checkpoints/1.txt", None)
