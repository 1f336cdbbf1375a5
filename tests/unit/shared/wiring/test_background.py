"""Tests of the work of background jobs over the embedded stores."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.auth.access_events import AccessEvent
from shared.auth.ports import ApiKey
from shared.catalog.document import load_document
from shared.provenance.ports import ChainKey, LookupField, Target
from shared.timestamps import now
from shared.wiring import Services
from tests.unit.shared.catalog.documents import PLANT

KEY = ApiKey("AAAAAAAA", b"salt", b"digest", "admin@x", "k", None, now(), None)
EVENT = AccessEvent("key-revoked-AAAAAAAA", "admin@x", "ApiKey.Revoked", "ApiKey", KEY.key_id)


async def run_job(services: Services, name: str) -> None:
    """Run the background job with this name."""
    [job] = [job for job in services.background.runner._jobs if job.name == name]
    await job.run()


async def test_the_job_of_grants_records_interrupted_revocations(local_services: Services) -> None:
    """The job appends the event of a revocation after which the process stopped; a second run adds nothing."""
    await local_services.provenance.catalog_service.apply(load_document(PLANT, "test"), "apply")
    await local_services.access.credential_store.add_or_get_key(KEY)
    await local_services.access.credential_store.revoke_key_and_find_pending_event(KEY.key_id, now(), EVENT)
    for _ in range(2):
        await run_job(local_services, "oauth-grants")
    chain = ChainKey(Target.ACCESS_CONTROL)
    found = await local_services.provenance.chain_store.find(chain, LookupField.APPEND_ID, [EVENT.append_id])
    assert len(found) == 1
    assert b"ApiKey.Revoked" in found[0].canonical


async def test_grants_are_ended_although_revocations_cannot_be_completed(
    local_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If interrupted revocations cannot be completed, the job of grants does its other work and then fails."""
    runs: list[str] = []

    async def fail() -> Any:
        raise ConnectionError

    async def record_run() -> None:
        runs.append("grants")

    monkeypatch.setattr(local_services.access.revoker, "complete_pending_revocations", fail)
    monkeypatch.setattr(local_services.access.grant_ender, "complete_ends_and_end_orphaned_grants", record_run)
    with pytest.raises(ConnectionError):
        await run_job(local_services, "oauth-grants")
    assert runs == ["grants"]


def test_a_failed_verification_of_chains_is_repeated_in_its_period(local_services: Services) -> None:
    """A failed verification of all chains is repeated after five minutes instead of on the next day."""
    [job] = [job for job in local_services.background.runner._jobs if job.name == "verification"]
    failed_at = datetime(2026, 1, 5, 2, 30, 1, tzinfo=UTC)
    assert job.compute_due_time_after_failure(failed_at) == failed_at + timedelta(minutes=5)


async def test_the_removal_of_provenance_gets_a_checkpoint(local_services: Services) -> None:
    """The events of a document that removes the policy `provenance` get a checkpoint, as all others do."""
    without = PLANT.replace("policies: {provenance: {requireApproval: true}}\n", "")
    chain, sizes = ChainKey(Target.PLATFORM_CONFIG), list[int]()
    for document in (PLANT, without):
        await local_services.provenance.catalog_service.apply(load_document(document, "test"), "apply")
        sizes.append((await local_services.provenance.chain_store.read_tip(chain)).sequence)
    assert sizes[0] < sizes[1]
    await run_job(local_services, "checkpoints")
    assert await local_services.provenance.checkpoints.count_covered_records(chain) == sizes[1]
