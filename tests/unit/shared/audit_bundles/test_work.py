"""Tests of the jobs that build audit bundles."""

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.catalog.document import load_document
from shared.downloads.models import BundledChain, BundleRequest, DownloadFormat, Job, JobStatus
from shared.provenance.ports import Target
from shared.settings import Settings
from shared.wiring import Services

JOB = "b1"
DOCUMENT = """
workspace: {id: plant-t, name: Test plant}
tier: enterprise
limits: {requestsPerMinute: 1000, concurrent: 10}
policies: {provenance: {requireApproval: true}}
team:
  - {id: ann@t, name: Ann, role: Admin}
"""


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[tuple[Services, Services]]:
    """Return the services of two processes on one folder, and a bundle's job."""
    made = Services(Settings.read({"DATA_DIR": str(tmp_path)})), Services(Settings.read({"DATA_DIR": str(tmp_path)}))
    await made[0].provenance.catalog_service.apply(load_document(DOCUMENT, "workspace"), "apply")
    at = datetime.now(UTC)
    chain = BundledChain(target=Target.DOMAIN_EVENTS, scope_key="hall")
    job = Job(
        id=JOB,
        owner="ann@t",
        format=DownloadFormat.CSV,
        start=at,
        end=at,
        connections=(),
        created_at=at,
        expires_at=at + timedelta(hours=1),
        bundle=BundleRequest(chains=(chain,)),
    )
    await made[0].downloads.jobs.create(job)
    yield made
    for each in made:
        await each.close()


async def test_a_build_on_two_processes_keeps_the_result_of_the_first(
    monkeypatch: pytest.MonkeyPatch, processes: tuple[Services, Services]
) -> None:
    """If two processes build the same bundle, only the file of the first that completes is stored."""
    slow, fast = processes
    upload = slow.downloads.blobs.upload

    async def let_other_process_complete(name: str, source: Path) -> None:
        assert await fast.audit_bundles.runner.build(JOB)
        await upload(name, source)

    monkeypatch.setattr(slow.downloads.blobs, "upload", let_other_process_complete)
    event = {"EntityType": "Test", "EntityID": "1", "ActionType": "Test", "Name": "first"}
    await slow.provenance.audit_log.append(Target.DOMAIN_EVENTS, "ann@t", event, append_id="1", scope_key="hall")
    assert await slow.audit_bundles.runner.build(JOB)
    job = await slow.downloads.jobs.get(JOB)
    assert job is not None
    assert job.status is JobStatus.COMPLETED
    [(_, file)] = job.files()
    assert [blob.name async for blob in slow.downloads.blobs.list("")] == [file.blob]
    content = await slow.downloads.blobs.read(file.blob)
    assert hashlib.sha256(content).hexdigest() == file.sha256


async def test_a_step_of_a_cancelled_bundle_deletes_its_files(processes: tuple[Services, Services]) -> None:
    """If a cancellation was interrupted before it deleted the files, the bundle's next step deletes them."""
    services, _ = processes
    await services.downloads.blobs.create(f"{JOB}/audit-bundle.zip", b"unfinished")
    await services.downloads.jobs.change(JOB, Job.cancel)
    assert await services.audit_bundles.runner.build(JOB)
    assert [blob.name async for blob in services.downloads.blobs.list("")] == []
