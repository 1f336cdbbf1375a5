"""Uploaded files of imports: their blob names and their size limit."""

from typing import Final

from shared.cold_data.ports import Blob, BlobStore
from shared.downloads.expiry import build_job_blob_prefix
from shared.downloads.import_request import ImportRequest
from shared.errors import Kind, WorkspaceError

MAX_BYTES: Final = 5 * 1024**3


def build_upload_name(job_id: str) -> str:
    """Return the blob name of the uploaded file of an import."""
    return f"{build_job_blob_prefix(job_id)}upload"


async def find_upload(blobs: BlobStore, job_id: str) -> Blob | None:
    """Return the uploaded file of an import; None if nothing was uploaded."""
    name = build_upload_name(job_id)
    return await anext((blob async for blob in blobs.list(name) if blob.name == name), None)


async def require_upload(blobs: BlobStore, job_id: str, request: ImportRequest) -> Blob:
    """Return the uploaded file of an import, after a check of its size.

    Raises:
        WorkspaceError: the same errors as :func:`check_upload`.
    """
    return check_upload(await find_upload(blobs, job_id), request)


def check_upload(blob: Blob | None, request: ImportRequest) -> Blob:
    """Return the uploaded file of an import, after a check of its size.

    Args:
        blob: the uploaded file; None if nothing was uploaded.
        request: the caller's request for the import.

    Raises:
        WorkspaceError: CONFLICT ``IMPORT_NOT_UPLOADED`` if the file is missing or does not have the announced size;
            TOO_LARGE ``IMPORT_TOO_LARGE``.
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
        detail = f"The file has {blob.size} bytes; an import takes at most {MAX_BYTES}. Split the file."
        raise WorkspaceError(Kind.TOO_LARGE, "IMPORT_TOO_LARGE", detail, maxBytes=MAX_BYTES)
    return blob
