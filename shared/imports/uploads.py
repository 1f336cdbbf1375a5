"""Checks of the uploaded files of imports."""

from typing import Final

from shared.cold_data.ports import Blob, BlobStore
from shared.downloads.expiry import build_upload_blob_name
from shared.downloads.import_request import ImportRequest
from shared.downloads.models import Job, JobKind, build_job_ended_error, build_job_not_found_error
from shared.downloads.ports import JobStore
from shared.errors import Kind, WorkspaceError

MAX_BYTES: Final = 5 * 1024**3


async def require_waiting_import(jobs: JobStore, upload_blob_name: str) -> Job:
    """Return the import of an uploaded file if it still waits for the file: it has neither started nor ended.

    Args:
        jobs: store of background jobs.
        upload_blob_name: blob name of the file, from ``build_upload_blob_name``.

    Raises:
        WorkspaceError: NOT_FOUND ``IMPORT_NOT_FOUND`` if there is no such import; CONFLICT ``IMPORT_ENDED`` or
            ``IMPORT_STARTED`` if it has ended or started; UNAVAILABLE ``DOWNLOADS_UNAVAILABLE``.
    """
    job = await jobs.find_job(upload_blob_name.partition("/")[0])
    if job is None:
        raise build_job_not_found_error(JobKind.IMPORT)
    if not job.is_unfinished:
        raise build_job_ended_error(job)
    if job.import_request is not None and job.import_request.started_at is not None:
        detail = "The import has started, so its file cannot change; create a new import for another file."
        raise WorkspaceError(Kind.CONFLICT, "IMPORT_STARTED", detail)
    return job


async def find_upload(blobs: BlobStore, job_id: str) -> Blob | None:
    """Return the uploaded file of an import; None if nothing was uploaded."""
    name = build_upload_blob_name(job_id)
    return await anext((blob async for blob in blobs.list(name) if blob.name == name), None)


async def find_and_require_complete_upload(blobs: BlobStore, job_id: str, request: ImportRequest) -> Blob:
    """Find the uploaded file of an import and return it; raise an error if the file is missing or incomplete.

    Raises:
        WorkspaceError: the same errors as :func:`require_complete_upload`.
    """
    return require_complete_upload(await find_upload(blobs, job_id), request)


def require_complete_upload(blob: Blob | None, request: ImportRequest) -> Blob:
    """Return the uploaded file of an import if it exists, has the announced size, and is not too large.

    Args:
        blob: the uploaded file; None if nothing was uploaded.
        request: the caller's request for the import.

    Raises:
        WorkspaceError: CONFLICT ``IMPORT_NOT_UPLOADED`` if the file is missing or does not have the announced size;
            TOO_LARGE ``IMPORT_TOO_LARGE`` if it is too large.
    """
    if blob is None:
        detail = "The import has no file yet; send the file to `uploadUrl` first."
        raise WorkspaceError(Kind.CONFLICT, "IMPORT_NOT_UPLOADED", detail)
    if request.declared_bytes is not None and blob.size != request.declared_bytes:
        detail = (
            f"The uploaded file has {blob.size} bytes, but the import announced {request.declared_bytes} bytes; "
            "upload the whole file."
        )
        raise WorkspaceError(Kind.CONFLICT, "IMPORT_NOT_UPLOADED", detail, uploadedBytes=blob.size)
    if blob.size > MAX_BYTES:
        detail = f"The file has {blob.size} bytes; an import accepts at most {MAX_BYTES} bytes. Split the file."
        raise WorkspaceError(Kind.TOO_LARGE, "IMPORT_TOO_LARGE", detail, maxBytes=MAX_BYTES)
    return blob
