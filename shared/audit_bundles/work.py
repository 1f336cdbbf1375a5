"""Build of an audit bundle: reads the chains, signs them, creates proofs and a report, and stores the zip file.

The module also builds the two files of a bundle that people read: the printable report and the README file.
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from shared.audit_bundles.bundle_file import KEY_SET, MANIFEST, README, REPORT, VERIFIER_KEY, BundleFile
from shared.audit_bundles.chain_section import ChainSection, ChainSources, build_filters, to_chain_key
from shared.cold_data.ports import BlobStore
from shared.cold_data.scratch import require_scratch_space
from shared.downloads.expiry import build_job_blob_prefix, remove_job_files, remove_job_files_except_result
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import BundleRequest, Job, JobEndedError, JobStatus, StoredFile
from shared.downloads.ports import JobStore
from shared.errors import Kind, WorkspaceError
from shared.fair_use.fair_scheduler import FairScheduler
from shared.observability import logs
from shared.provenance.amendment_report import render_amendment_html, render_html_page_start
from shared.provenance.canonical import encode_canonical_json
from shared.provenance.cose import encode_key_set
from shared.provenance.decisions import find_decisions, read_decided_amendment_id
from shared.provenance.hash_rule import format_record_id
from shared.provenance.notes import VerifierKey
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, Target
from shared.provenance.queries import MAX_CHAIN, iterate_record_pages
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339

_README: Final = """Audit bundle of the workspace {workspace}
Created {createdAt} by {createdBy}

manifest.json      the chains of this bundle, their files, and the results of their verification by the service
chains/            the records of each chain, oldest first
checkpoints/       the newest signed checkpoint of each chain
proofs/            proofs that the checkpoint covers the last record, or each record of a filtered chain
verifier-key.txt   the public key of the checkpoints
{receipts}report.html        a printable report for people; it is not evidence

Verify this bundle without the service, by the command of the client package:

    oi verify-file BUNDLE.zip --key KEY

KEY is the line of /.well-known/oi-checkpoint-key, obtained from another source than this bundle. Without --key, the
enclosed keys are used. Then the result only means that the bundle agrees with itself.

SHA-256 of the other files:
"""


_RECEIPTS: Final = """receipts/          the receipt (RFC 9942) of each record that the checkpoint of its chain covers
verifier-key.cbor  the public keys of the checkpoints and receipts, as a COSE_KeySet
"""


def build_readme(manifest: Mapping[str, Any], digests: Mapping[str, str]) -> bytes:
    """Build the README file of a bundle; the file ends with the digests of all other files of the bundle.

    Args:
        manifest: content of the bundle's file ``manifest.json``.
        digests: SHA-256 of each other file of the bundle, by the file's name.
    """
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    receipts = _RECEIPTS if KEY_SET in digests else ""
    named = {name: _to_one_line(manifest[name]) for name in _NAMED}
    return (_README.format(**named, receipts=receipts) + lines).encode()


_NAMED: Final = ("workspace", "createdAt", "createdBy")


async def stream_bundle_report_html(
    store: ChainStore,
    manifest: Mapping[str, Any],
    selections: Sequence[tuple[ChainKey, Filters]],
    broken_chains: Collection[int],
    runtime: Runtime,
) -> AsyncIterator[bytes]:
    """Render the printable report of a bundle part by part: the list of chains, then the amendments.

    Args:
        store: store of the chains.
        manifest: content of the bundle's file ``manifest.json``.
        selections: each chain of the bundle, with the filters that select its records. Decisions about amendments are
            shown only up to the record with the filters' ``to_sequence``.
        broken_chains: indexes, in the manifest's list of chains, of the chains that the verification found broken. The
            manifest itself does not have a verdict for each of them.
        runtime: source of worker threads.
    """
    yield _render_overview_html(manifest, broken_chains).encode()
    for chain, filters in selections:
        if chain.target is Target.DOMAIN_AMENDMENTS:
            async for part in _stream_amendments_html(store, chain, filters, runtime):
                yield part
    yield b"</body></html>\n"


def _render_overview_html(manifest: Mapping[str, Any], broken_chains: Collection[int]) -> str:
    rows = "".join(
        _render_chain_table_row_html(entry, is_broken=index in broken_chains)
        for index, entry in enumerate(manifest["chains"])
    )
    filters = ", ".join(f"{name} {value}" for name, value in manifest["filters"].items() if value) or "none"
    return (
        f"{render_html_page_start(f'Audit bundle of {manifest["workspace"]}')}"
        f"<p>Created {escape(manifest['createdAt'])} by {escape(manifest['createdBy'])}. "
        f"Filters: {escape(filters)}.</p>"
        "<table><thead><tr><th>Target</th><th>Scope</th><th>Records</th><th>Complete</th><th>Result</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _render_chain_table_row_html(manifest_entry: Mapping[str, Any], *, is_broken: bool) -> str:
    verdict = manifest_entry["verdict"]
    if verdict is None and is_broken:
        result = "broken; verify the chain in the service, or request it without filters"
    elif verdict is None:
        result = "not verified as a whole, because filters exclude records"
    elif verdict["ChainValid"]:
        result = verdict["Reason"]
    else:
        result = f"broken at {verdict['BrokenAt']}: {verdict['Reason']}"
    values = (
        manifest_entry["target"],
        manifest_entry["scopeKey"] or "",
        manifest_entry["records"],
        "yes" if manifest_entry["complete"] else "no",
        result,
    )
    return "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in values) + "</tr>"


async def _stream_amendments_html(
    store: ChainStore, chain: ChainKey, filters: Filters, runtime: Runtime
) -> AsyncIterator[bytes]:
    """Yield the report's HTML for the amendments (corrections of entities) of a chain, each with its decision.

    After ``MAX_CHAIN`` amendments, a notice replaces the remaining ones.
    """
    yield f"<h2>Amendments of scope {escape(chain.scope_key)}</h2>".encode()
    shown = 0
    async for page, _, _ in iterate_record_pages(store, chain, filters, newest_first=False, max_records=100):
        found = await runtime.run_in_thread(_exclude_decision_records, page)
        amendments = found[: MAX_CHAIN - shown]
        ids = [format_record_id(record.sequence) for record in amendments]
        decided = await find_decisions(store, chain, ids, runtime=runtime)
        if filters.to_sequence is not None:
            decided = decided.select_decisions_up_to(filters.to_sequence)
        for record in amendments:
            yield (await runtime.run_in_thread(render_amendment_html, record, decided)).encode()
        shown += len(amendments)
        if len(found) > len(amendments):
            yield f'<p class="notice">Only the first {MAX_CHAIN} amendments of this scope are shown.</p>'.encode()
            return


def _exclude_decision_records(records: Sequence[ChainRecord]) -> list[ChainRecord]:
    return [record for record in records if not read_decided_amendment_id(record)]


def _to_one_line(value: object) -> str:
    return " ".join(str(value).split())


CONCURRENT_BUNDLES: Final = 1
MAX_WAITING: Final = 3
"""Maximum number of bundles of one principal that wait in a process; builds of further bundles are retried later."""
CHECK_SECONDS: Final = 0.5
FAILURE_MESSAGE: Final = "The bundle failed after retries; the service log contains the reason."
_LOG = logs.get_logger("bundles")


class BundleRunner:
    """Builder of audit bundles.

    A build can be repeated: the new file has the same content, except for records that were added meanwhile.

    Args:
        jobs: store of the jobs.
        sources: stores and services with which the chains are read, signed and verified.
        blobs: store of the finished zip files.
        scratch: folder of temporary files.
        quota: limits on the number of each principal's jobs and on the size of their files.
        workspace: returns the id of the workspace.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        jobs: JobStore,
        sources: ChainSources,
        blobs: BlobStore,
        scratch: Path,
        quota: JobQuota,
        workspace: Callable[[], Awaitable[str]],
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._jobs = jobs
        self._sources = sources
        self._blobs = blobs
        self._scratch = scratch
        self._quota = quota
        self._workspace = workspace
        self._runtime = runtime
        self._lane = FairScheduler(CONCURRENT_BUNDLES, CONCURRENT_BUNDLES + MAX_WAITING)

    async def build_bundle_unless_busy(self, job_id: str) -> bool:
        """Build and store the bundle of a job; mark the job as completed, or as failed if a retry cannot succeed.

        Returns:
            False if too many bundles of the same principal are waiting in this process; retry later.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond, or if the key that signs checkpoints cannot be
                reached or was replaced during the build; retry.
        """
        job = await self._jobs.find_job(job_id)
        if job is None or job.bundle is None or not job.is_unfinished:
            # The process that ended the job may have failed before it deleted the files.
            await remove_job_files_except_result(self._blobs, self._jobs, job_id)
            return True
        if not self._lane.has_room(job.owner):
            return False
        async with self._lane.occupy_slot(job.owner):
            try:
                await self._build_and_store_bundle_file(job, job.bundle)
            except JobEndedError:
                await remove_job_files_except_result(self._blobs, self._jobs, job_id)
            except WorkspaceError as error:
                if error.kind not in {Kind.UNPROCESSABLE, Kind.STORAGE_FULL, Kind.CONFLICT}:
                    raise
                await self._end_job(job_id, JobStatus.FAILED, error)
        return True

    async def fail_job(self, job_id: str) -> None:
        """Mark the job of a bundle as failed after its last retry, with the error :data:`FAILURE_MESSAGE`."""
        await self._end_job(job_id, JobStatus.FAILED, FAILURE_MESSAGE)

    async def _build_and_store_bundle_file(self, job: Job, bundle: BundleRequest) -> None:
        async with self._runtime.open_scratch_folder(self._scratch, f"{job.id}-") as folder:
            path = folder / "bundle.zip"
            records, broken = await self._write_bundle_file(job, bundle, path)
            digest = await self._runtime.run_in_thread(_compute_sha256_hex_of_file, path)
            file = StoredFile(
                # Another process may build the same bundle with more records; it must not replace this file.
                blob=f"{build_job_blob_prefix(job.id)}audit-bundle-{digest}.zip",
                rows=records,
                size=path.stat().st_size,
                sha256=digest,
            )
            await self._quota.reserve_bytes(job, file.size)
            await self._blobs.upload(file.blob, path)
        after = await self._jobs.change(job.id, lambda current: current.add_bundle_file(file, broken))
        if after is None or not after.is_unfinished:
            raise JobEndedError
        await self._end_job(job.id, JobStatus.COMPLETED)
        await remove_job_files_except_result(self._blobs, self._jobs, job.id)

    async def _write_bundle_file(self, job: Job, bundle: BundleRequest, path: Path) -> tuple[int, list[int]]:
        """Write the zip file of a bundle; return the number of its records, and the indexes of its broken chains."""
        watch = _JobWatch(self._jobs, job.id, self._scratch, self._runtime)
        key = await self._sources.checkpoints.load_verifier_key()
        entries: list[dict[str, Any]] = []
        broken: list[int] = []
        selections: list[tuple[ChainKey, Filters]] = []
        async with BundleFile(path, self._runtime) as file:
            for number, each in enumerate(bundle.chains, start=1):
                section = ChainSection(
                    self._sources,
                    to_chain_key(each),
                    build_filters(bundle),
                    number,
                    watch.raise_if_job_ended_or_disk_full,
                    with_receipts=bundle.receipts,
                )
                entries.append(await section.write_files_and_build_manifest_entry(file))
                selections.append((to_chain_key(each), section.build_filters_of_written_records()))
                if section.is_broken:
                    broken.append(number - 1)
                await watch.report_progress(number, sum(entry["records"] for entry in entries), broken)
            manifest = {
                "workspace": await self._workspace(),
                "createdAt": format_rfc3339(job.created_at),
                "createdBy": job.owner,
                "filters": _bundle_filters_to_json(bundle),
                "chains": entries,
            }
            await file.write_entry(MANIFEST, encode_canonical_json(manifest))
            await self._write_public_keys(file, bundle, key)
            report = stream_bundle_report_html(self._sources.store, manifest, selections, broken, self._runtime)
            await file.write_entry_in_parts(REPORT, report)
            readme = await self._runtime.run_in_thread(build_readme, manifest, file.digests)
            await file.write_entry(README, readme)
        return sum(entry["records"] for entry in entries), broken

    async def _write_public_keys(self, file: BundleFile, bundle: BundleRequest, key: VerifierKey) -> None:
        """Write the public keys that verify the checkpoints and the receipts of the bundle.

        ``key`` is the public key of the checkpoint signer, as it was before the first chain was read.

        Raises:
            WorkspaceError: UNAVAILABLE ``CHECKPOINTS_UNAVAILABLE`` if the signing key was replaced since.
        """
        if await self._sources.checkpoints.load_verifier_key() != key:
            # One key must verify the checkpoints of all chains, but some have no signature of the new key.
            detail = "The key that signs checkpoints was replaced while the bundle was built; try again."
            raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", detail)
        await file.write_entry(VERIFIER_KEY, f"{key}\n".encode())
        if bundle.receipts:
            await file.write_entry(KEY_SET, encode_key_set(await self._sources.checkpoints.keys.load_trusted_keys()))

    async def _end_job(self, job_id: str, status: JobStatus, error: WorkspaceError | str | None = None) -> None:
        job = await self._jobs.change(job_id, lambda current: current.finish(status, error))
        if job is None:
            return
        _LOG.info("audit bundle ended", extra=logs.fields(job=job_id, status=job.status))
        if job.status is JobStatus.COMPLETED:
            await self._quota.release_completed_job(job)
        else:
            await remove_job_files(self._blobs, job_id)
            await self._quota.release_job_and_bytes(job.owner, job_id)


class _JobWatch:
    """Monitor of a job during the build of its bundle: detects the job's cancellation, and stores its progress."""

    def __init__(self, jobs: JobStore, job_id: str, scratch: Path, runtime: Runtime) -> None:
        self._jobs = jobs
        self._job_id = job_id
        self._scratch = scratch
        self._runtime = runtime
        self._checked_at = 0.0

    async def raise_if_job_ended_or_disk_full(self) -> None:
        """Check, at most twice a second, that the job has not ended and that the disk has free space.

        Raises:
            JobEndedError: the job has ended or was deleted.
            WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL`` if the disk has no free space.
        """
        if self._runtime.monotonic() < self._checked_at + CHECK_SECONDS:
            return
        self._checked_at = self._runtime.monotonic()
        require_scratch_space(self._scratch, 0)
        job = await self._jobs.find_job(self._job_id)
        if job is None or not job.is_unfinished:
            raise JobEndedError

    async def report_progress(self, chains_done: int, records_done: int, broken_chains: Sequence[int]) -> None:
        """Store the progress of the bundle's job.

        Raises:
            JobEndedError: the job has ended or was deleted.
        """
        job = await self._jobs.change(
            self._job_id, lambda current: current.add_bundle_progress(chains_done, records_done, broken_chains)
        )
        if job is None or not job.is_unfinished:
            raise JobEndedError


def _bundle_filters_to_json(bundle: BundleRequest) -> dict[str, str | None]:
    return {
        "startDate": bundle.start_date or None,
        "endDate": bundle.end_date or None,
        "entityId": bundle.entity_id or None,
    }


def _compute_sha256_hex_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
