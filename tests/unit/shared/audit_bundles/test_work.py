"""Tests of the jobs that build audit bundles, and of the texts in a bundle."""

import hashlib
import io
import itertools
import json
import sqlite3
import zipfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.audit_bundles import work
from shared.audit_bundles.bundle_file import KEY_SET, VERIFIER_KEY, BundleFile
from shared.audit_bundles.chain_section import ChainSection
from shared.audit_bundles.work import build_readme, stream_bundle_report_html
from shared.backends.embedded.key_files import rotate_checkpoint_key
from shared.backends.embedded.provenance import SqliteChainStore
from shared.catalog.document import load_document
from shared.downloads.models import BundledChain, BundleRequest, DownloadFormat, Job, JobStatus
from shared.errors import Kind, WorkspaceError
from shared.provenance.notes import VerifierKey, verify_note_and_get_text
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, Target, Tip
from shared.provenance.records import build_record_draft, seal_record
from shared.runtime import SYSTEM_RUNTIME
from shared.settings import Settings
from shared.wiring import Services

CHAIN = ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")
NAMES = {"workspace": "Plant <1>", "createdAt": "2026-01-02T03:04:05Z", "createdBy": "ann@t"}
VALID = {"ChainValid": True, "Reason": "ok", "BrokenAt": None}
AMENDMENT = {
    "AmendedBy": "ann@t",
    "AmendedRecord": {"weight": 14},
    "ChangedFields": ["weight"],
    "EntityID": "B-1",
    "EntityType": "Batch",
    "OriginalRecord": {"weight": 41},
    "ReasonCategory": "typo",
    "ReasonText": "swapped digits",
    "ScopeKey": "line-1",
    "Status": "pending",
}
DECISION = {
    "AmendmentID": "000000000001",
    "ApprovedBy": "bob@t",
    "EntityID": "B-1",
    "EntityType": "Batch",
    "Meaning": "approval",
    "ScopeKey": "line-1",
    "Status": "approved",
}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteChainStore]:
    """Return an empty store of chains."""
    opened = SqliteChainStore(tmp_path / "provenance.sqlite")
    yield opened
    await opened.close()


def _build_chain(target: str = "DomainEvents", **members: Any) -> dict[str, Any]:
    entry = {"target": target, "scopeKey": "line-1", "records": 3, "complete": True, "verdict": VALID}
    return {**entry, **members}


async def _render_report(
    store: ChainStore,
    chains: Sequence[dict[str, Any]],
    to_sequence: int | None = None,
    broken_chains: Sequence[int] = (),
    /,
    **filters: str,
) -> str:
    manifest = {**NAMES, "filters": filters, "chains": chains}
    selected = Filters(to_sequence=to_sequence)
    keys = [(ChainKey(Target(entry["target"]), entry["scopeKey"] or ""), selected) for entry in chains]
    parts = [part async for part in stream_bundle_report_html(store, manifest, keys, broken_chains, SYSTEM_RUNTIME)]
    return b"".join(parts).decode()


def test_the_readme_lists_the_digests_by_name() -> None:
    """The README ends with the digest of each file, sorted by file name."""
    text = build_readme(NAMES, {"b.json": "22", "a.json": "11"}).decode()
    assert text.endswith("SHA-256 of the other files:\n11  a.json\n22  b.json\n")


def test_the_readme_describes_receipts_only_if_there_are_any() -> None:
    """The README describes receipts only if the bundle has a key set."""
    assert "receipts/" in build_readme(NAMES, {KEY_SET: "1"}).decode()
    assert "receipts/" not in build_readme(NAMES, {"a.json": "1"}).decode()


def test_a_name_cannot_add_lines_to_the_readme() -> None:
    """A line break in a name becomes a blank, so that the name cannot look like a line of the README."""
    text = build_readme({**NAMES, "workspace": "Plant\n11  fake.json"}, {}).decode()
    assert text.startswith("Audit bundle of the workspace Plant 11 fake.json\n")


async def test_the_report_lists_the_chains(store: SqliteChainStore) -> None:
    """The report has a row for each chain; texts of the workspace are escaped."""
    page = await _render_report(store, [_build_chain(), _build_chain("AccessControl", scopeKey=None, complete=False)])
    assert "<tr><td>DomainEvents</td><td>line-1</td><td>3</td><td>yes</td><td>ok</td></tr>" in page
    assert "<tr><td>AccessControl</td><td></td><td>3</td><td>no</td><td>ok</td></tr>" in page
    assert "Plant &lt;1&gt;" in page
    assert "<1>" not in page
    assert page.endswith("</body></html>\n")


@pytest.mark.parametrize(
    ("verdict", "broken_chains", "expected"),
    [
        ({"ChainValid": False, "Reason": "hash differs", "BrokenAt": 2}, (1,), "broken at 2: hash differs"),
        (None, (0,), "not verified as a whole, because filters exclude records"),
        (None, (1,), "broken; verify the chain in the service, or request it without filters"),
    ],
)
async def test_the_report_states_the_result_of_each_chain(
    store: SqliteChainStore, verdict: dict[str, Any] | None, broken_chains: Sequence[int], expected: str
) -> None:
    """The report shows which chains are broken, and no result for a chain that was not verified."""
    page = await _render_report(store, [_build_chain(), _build_chain(verdict=verdict)], None, broken_chains)
    assert f"<td>{expected}</td>" in page


async def test_the_report_names_its_filters(store: SqliteChainStore) -> None:
    """The report lists the filters of the bundle, or ``none`` if the bundle has no filter."""
    assert "Filters: from 2026, entity B-1." in await _render_report(
        store, [], **{"from": "2026", "to": "", "entity": "B-1"}
    )
    assert "Filters: none." in await _render_report(store, [], to="")


async def _append_events(store: SqliteChainStore, *contents: Mapping[str, Any]) -> None:
    records: list[ChainRecord] = []
    for number, content in enumerate(contents, start=1):
        draft = build_record_draft(content, "ApprovedAt" if "ApprovedBy" in content else "AmendedAt")
        before = records[-1].hash if records else ""
        records.append(seal_record(draft, number, "2026-05-04T07:00:00.000000Z", before, f"append {number}"))
    await store.append(CHAIN, records, Tip())


async def test_amendments_are_shown_with_their_decision(store: SqliteChainStore) -> None:
    """The report shows each amendment of a chain together with the decision about it."""
    await _append_events(store, AMENDMENT, DECISION)
    page = await _render_report(store, [_build_chain("DomainAmendments")])
    assert "<h2>Amendments of scope line-1</h2>" in page
    assert page.count("<article") == 1
    assert "bob@t" in page


async def test_the_report_has_no_amendment_section_for_event_chains(store: SqliteChainStore) -> None:
    """In the report, only chains of amendments have a section that lists amendments; chains of events have none."""
    assert "<h2>" not in await _render_report(store, [_build_chain()])


async def test_the_number_of_amendments_is_limited(store: SqliteChainStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report shows only the first amendments of a scope, and states that there are more."""
    monkeypatch.setattr(work, "MAX_CHAIN", 2)
    await _append_events(store, AMENDMENT, AMENDMENT, AMENDMENT)
    page = await _render_report(store, [_build_chain("DomainAmendments")])
    assert page.count("<article") == 2
    assert "Only the first 2 amendments" in page


async def test_a_complete_report_is_not_marked_as_truncated(
    store: SqliteChainStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a scope has exactly as many amendments as the report can show, the report does not state a limit."""
    monkeypatch.setattr(work, "MAX_CHAIN", 2)
    await _append_events(store, AMENDMENT, AMENDMENT, DECISION)
    page = await _render_report(store, [_build_chain("DomainAmendments")])
    assert page.count("<article") == 2
    assert "Only the first" not in page


@pytest.mark.parametrize(("last", "amendments", "decisions"), [(1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 3, 1)])
async def test_the_report_shows_no_later_amendments_and_decisions(
    store: SqliteChainStore, last: int, amendments: int, decisions: int
) -> None:
    """The report shows only amendments and decisions up to the last record that the bundle contains."""
    await _append_events(store, AMENDMENT, AMENDMENT, DECISION, AMENDMENT)
    page = await _render_report(store, [_build_chain("DomainAmendments")], last)
    assert (page.count("<article"), page.count("Approved by")) == (amendments, decisions)


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
async def bundle_processes(tmp_path: Path) -> AsyncIterator[tuple[Services, Services]]:
    """Return the bundle services of two processes that share a folder, and the job of one bundle."""
    made = Services(Settings.read({"DATA_DIR": str(tmp_path)})), Services(Settings.read({"DATA_DIR": str(tmp_path)}))
    await made[0].provenance.catalog_service.apply(load_document(DOCUMENT, "workspace"), "apply")
    await made[0].downloads.jobs.create(_build_job(JOB, ChainKey(Target.DOMAIN_EVENTS, "hall")))
    yield made
    for each in made:
        await each.close()


def _build_job(job_id: str, chain: ChainKey) -> Job:
    at = datetime.now(UTC)
    return Job(
        id=job_id,
        owner="ann@t",
        format=DownloadFormat.CSV,
        start=at,
        end=at,
        connections=(),
        created_at=at,
        expires_at=at + timedelta(hours=1),
        bundle=BundleRequest(chains=(BundledChain(target=chain.target, scope_key=chain.scope_key),)),
    )


async def _append_event(services: Services) -> None:
    event = {"EntityType": "Test", "EntityID": "1", "ActionType": "Test", "Name": "first"}
    await services.provenance.audit_log.append(Target.DOMAIN_EVENTS, "ann@t", event, append_id="1", scope_key="hall")


async def _open_bundle(services: Services, job_id: str) -> zipfile.ZipFile:
    job = await services.downloads.jobs.find_job(job_id)
    assert job is not None
    [(_, stored)] = job.list_files()
    return zipfile.ZipFile(io.BytesIO(await services.downloads.blobs.read(stored.blob)))


async def test_a_build_on_two_processes_keeps_the_result_of_the_first(
    monkeypatch: pytest.MonkeyPatch, bundle_processes: tuple[Services, Services]
) -> None:
    """If two processes build the same bundle, only the file of the first that completes is stored."""
    slow, fast = bundle_processes
    upload = slow.downloads.blobs.upload

    async def let_other_process_complete(name: str, source: Path) -> None:
        assert await fast.audit_bundles.runner.build_bundle_unless_busy(JOB)
        await upload(name, source)

    monkeypatch.setattr(slow.downloads.blobs, "upload", let_other_process_complete)
    await _append_event(slow)
    assert await slow.audit_bundles.runner.build_bundle_unless_busy(JOB)
    job = await slow.downloads.jobs.find_job(JOB)
    assert job is not None
    assert job.status is JobStatus.COMPLETED
    [(_, file)] = job.list_files()
    assert [blob.name async for blob in slow.downloads.blobs.list("")] == [file.blob]
    content = await slow.downloads.blobs.read(file.blob)
    assert hashlib.sha256(content).hexdigest() == file.sha256


async def test_the_broken_chains_of_a_job_belong_to_its_file(
    monkeypatch: pytest.MonkeyPatch, bundle_processes: tuple[Services, Services], tmp_path: Path
) -> None:
    """If two processes build the same bundle, the job lists the broken chains of the build that stored the file."""
    slow, other = bundle_processes
    upload = slow.downloads.blobs.upload

    async def fail(_name: str, _source: Path) -> None:
        raise WorkspaceError(Kind.UNAVAILABLE, "BACKEND_UNAVAILABLE", "The store does not respond.")

    async def let_other_process_find_damage(name: str, source: Path) -> None:
        with closing(sqlite3.connect(tmp_path / "provenance.sqlite")) as file, file:
            file.execute("UPDATE records SET hash = 'ab' WHERE chain = (SELECT max(chain) FROM chains)")
        with pytest.raises(WorkspaceError, match="does not respond"):
            await other.audit_bundles.runner.build_bundle_unless_busy(JOB)
        await upload(name, source)

    monkeypatch.setattr(other.downloads.blobs, "upload", fail)
    monkeypatch.setattr(slow.downloads.blobs, "upload", let_other_process_find_damage)
    await _append_event(slow)
    assert await slow.audit_bundles.runner.build_bundle_unless_busy(JOB)
    job = await slow.downloads.jobs.find_job(JOB)
    assert job is not None
    assert job.bundle is not None
    assert (job.status, job.bundle.broken_chains) == (JobStatus.COMPLETED, ())
    with await _open_bundle(slow, JOB) as bundle:
        assert json.loads(bundle.read("manifest.json"))["chains"][0]["verdict"]["ChainValid"] is True


async def test_a_step_of_a_cancelled_bundle_deletes_its_files(bundle_processes: tuple[Services, Services]) -> None:
    """If a cancellation was interrupted before it deleted the files, the bundle's next step deletes them."""
    services, _ = bundle_processes
    await services.downloads.blobs.create_if_missing(f"{JOB}/audit-bundle.zip", b"unfinished")
    await services.downloads.jobs.change(JOB, Job.cancel)
    assert await services.audit_bundles.runner.build_bundle_unless_busy(JOB)
    assert [blob.name async for blob in services.downloads.blobs.list("")] == []


async def test_a_bundle_that_no_retry_can_complete_fails_at_once(
    bundle_processes: tuple[Services, Services], tmp_path: Path
) -> None:
    """If the key of the stored checkpoints is missing, the bundle fails without a retry, and its job has the reason."""
    services, other = bundle_processes
    await _append_event(services)
    await services.provenance.checkpoints.create_all_and_count_them()
    (tmp_path / "checkpoint-key.pem").unlink()
    assert await other.audit_bundles.runner.build_bundle_unless_busy(JOB)
    job = await other.downloads.jobs.find_job(JOB)
    assert job is not None
    assert job.status is JobStatus.FAILED
    assert job.error_code == "CHECKPOINT_REFUSED"
    assert (job.error or "").startswith("CHECKPOINT_REFUSED: ")


async def test_a_bundle_is_built_again_if_the_key_is_replaced_after_a_chain(
    monkeypatch: pytest.MonkeyPatch, bundle_processes: tuple[Services, Services], tmp_path: Path
) -> None:
    """If the key is replaced after a chain was signed, a retry builds a bundle that its enclosed key verifies."""
    services, _ = bundle_processes
    await _append_event(services)
    write = ChainSection.write_files_and_build_manifest_entry

    async def write_then_replace_key(section: ChainSection, file: BundleFile) -> dict[str, Any]:
        entry = await write(section, file)
        rotate_checkpoint_key(tmp_path / "checkpoint-key.pem")
        return entry

    with monkeypatch.context() as patch:
        patch.setattr(ChainSection, "write_files_and_build_manifest_entry", write_then_replace_key)
        with pytest.raises(WorkspaceError) as caught:
            await services.audit_bundles.runner.build_bundle_unless_busy(JOB)
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE")
    assert await services.audit_bundles.runner.build_bundle_unless_busy(JOB)
    with await _open_bundle(services, JOB) as bundle:
        key = VerifierKey.parse(bundle.read(VERIFIER_KEY).decode().strip())
        assert verify_note_and_get_text(bundle.read("checkpoints/1.txt"), key)


@pytest.mark.parametrize("damage", ["", "UPDATE records SET hash = 'ab' WHERE sequence = 1"], ids=["valid", "broken"])
async def test_the_report_of_a_bundle_has_only_records_of_the_bundle(
    monkeypatch: pytest.MonkeyPatch, bundle_processes: tuple[Services, Services], tmp_path: Path, damage: str
) -> None:
    """Amendments and decisions that are added after their chain was written are missing from the bundle's report.

    The job names the broken chains of the bundle.
    """
    services, _ = bundle_processes
    log = services.provenance.chain_log
    await log.append(CHAIN, build_record_draft(AMENDMENT, "AmendedAt"))
    with closing(sqlite3.connect(tmp_path / "provenance.sqlite")) as file, file:
        file.execute(f"{damage} AND chain = (SELECT max(chain) FROM chains)" if damage else "SELECT 1")
    load_verifier_key = services.provenance.checkpoints.load_verifier_key
    loads = itertools.count()

    async def load_key_and_append_after_chains() -> Any:
        # The key is loaded before and after the chains.
        if next(loads):
            await log.append(CHAIN, build_record_draft(DECISION, "ApprovedAt"))
            await log.append(CHAIN, build_record_draft(AMENDMENT, "AmendedAt"))
        return await load_verifier_key()

    monkeypatch.setattr(services.provenance.checkpoints, "load_verifier_key", load_key_and_append_after_chains)
    await services.downloads.jobs.create(_build_job("b2", CHAIN))
    assert await services.audit_bundles.runner.build_bundle_unless_busy("b2")
    job = await services.downloads.jobs.find_job("b2")
    assert job is not None
    assert job.bundle is not None
    assert job.bundle.broken_chains == ((0,) if damage else ())
    with await _open_bundle(services, "b2") as bundle:
        page = bundle.read("report.html").decode()
        assert len(json.loads(bundle.read("chains/1.json"))) == 1
    assert (page.count("<article"), page.count("Approved by")) == (1, 0)
    assert ("broken at" in page) is bool(damage)
