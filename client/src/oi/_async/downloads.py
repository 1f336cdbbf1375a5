"""Downloads: jobs of the service that convert stored telemetry to files."""

import hashlib
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from oi._async.transport import AsyncTransport
from oi._async.waiting import sleep
from oi.drafts import create_draft_file
from oi.errors import ApiError, ForbiddenError, ServerError, UnreachableError
from oi.instants import format_instant
from oi.requests import has_invalid_certificate, parse_json_reply, quote_path_segment, require_no_content

if TYPE_CHECKING:
    from oi.models import Download as DownloadJob
    from oi.models import DownloadFile

_ROUTE = "/oi-api/downloads"
_ENDED = frozenset({"completed", "failed", "cancelled"})
_POLL_SECONDS = 1.0
_MAX_FILE_ATTEMPTS = 5
"""Maximum number of attempts to fetch one file of a download."""


class AsyncDownloads:
    """Starts downloads: jobs of the service that convert the stored telemetry of a time range to files."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def connection(
        self,
        lookup: str,
        *,
        start: datetime | str,
        end: datetime | str,
        format: str = "csv",  # noqa: A002  as the service
    ) -> "AsyncDownload":
        """Start a download of the telemetry of one data connection.

        Args:
            lookup: short name of the connection in URLs.
            start: start of the time range, inclusive.
            end: end of the time range, exclusive.
            format: format of the files: ``csv``, ``jsonl`` or ``parquet``.
        """
        return await self._start_download(f"data-connections/{quote_path_segment(lookup)}", start, end, format)

    async def surface(
        self,
        lookup: str,
        *,
        start: datetime | str,
        end: datetime | str,
        format: str = "csv",  # noqa: A002  as the service
    ) -> "AsyncDownload":
        """Start a download of the telemetry of a surface (group of connections); arguments as :meth:`connection`."""
        return await self._start_download(f"surfaces/{quote_path_segment(lookup)}", start, end, format)

    async def _start_download(
        self, source_path: str, start: datetime | str, end: datetime | str, file_format: str
    ) -> "AsyncDownload":
        body = {"format": file_format, "dateRange": {"start": format_instant(start), "end": format_instant(end)}}
        response = await self._transport.request("POST", f"{_ROUTE}/{source_path}", json=body, appends=True)
        return AsyncDownload(self._transport, parse_json_reply(response))


class AsyncDownload:
    """Download job that the service has started.

    Attributes:
        job: last known state of the download job, as the service returned it.
    """

    def __init__(self, transport: AsyncTransport, job: "DownloadJob") -> None:
        self._transport = transport
        self.job = job

    async def refresh(self) -> "DownloadJob":
        """Request the current state of the download job, with new links to its files, and return the state."""
        self.job = await self._transport.get_json(f"{_ROUTE}/{self.job['downloadId']}")
        return self.job

    async def wait(self, *, on_progress: Callable[["DownloadJob"], None] | None = None) -> "DownloadJob":
        """Wait until the download job has completed; return its final state.

        Args:
            on_progress: called with the state of the job after each request for the state.

        Raises:
            ApiError: the job failed or was cancelled.
        """
        while True:
            job = await self.refresh()
            if on_progress is not None:
                on_progress(job)
            if job["status"] in _ENDED:
                break
            await sleep(_POLL_SECONDS)
        if job["status"] != "completed":
            raise _build_download_job_error(job)
        return job

    async def cancel(self) -> None:
        """Cancel the download job."""
        require_no_content(await self._transport.request("DELETE", f"{_ROUTE}/{self.job['downloadId']}"))

    async def save(self, folder: Path | str) -> list[Path]:
        """Wait until the download job has completed, and save its files; return the paths of the saved files.

        A file is named by its data connection, a number if the connection has several files, and the start of its
        SHA-256, for example ``pump-rig-3f2a81c0.csv``. It gets this name only after its SHA-256 has been verified. If
        its link has expired, or the network connection is lost, the file is fetched again by a new link.

        Args:
            folder: folder for the files, created if it is missing.

        Raises:
            ApiError: as :meth:`wait`, or a file cannot be fetched in several attempts.
            ValueError: the content of a file does not match the SHA-256 that the service states.
        """
        job = await self.wait()
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        names = _list_local_file_names(job)
        return [await self._save_file_with_retries(index, target / name) for index, name in enumerate(names)]

    async def _save_file_with_retries(self, file_index: int, target: Path) -> Path:
        attempt = 1
        while True:
            try:
                return await self._fetch_and_verify_file(self.job["files"][file_index], target)
            except (ForbiddenError, ServerError, UnreachableError) as error:
                # A link lives for minutes, but the files before this one can take hours.
                if attempt >= _MAX_FILE_ATTEMPTS or has_invalid_certificate(error):
                    raise
            attempt += 1
            await sleep(_POLL_SECONDS)
            await self.refresh()

    async def _fetch_and_verify_file(self, file: "DownloadFile", target: Path) -> Path:
        url = urljoin(f"{self._transport.url}/", file["url"])
        digest = hashlib.sha256()
        with create_draft_file(target) as draft:
            async with self._transport.open_signed_link(url) as response:
                with draft.open("wb") as output:
                    async for part in response.aiter_bytes():
                        digest.update(part)
                        output.write(part)
            if digest.hexdigest() != file["sha256"]:
                raise ValueError(f"{target.name}: the content does not match its SHA-256; start the download again")
            draft.replace(target)
        return target


def _build_download_job_error(job: "DownloadJob") -> ApiError:
    """Build the error for a failed or cancelled download job, with the reason and the error code of the job."""
    reason = job["error"] or f"The download is {job['status']}."
    code = job.get("errorCode") or _parse_leading_error_code(reason)
    return ApiError(0, code, reason.removeprefix(f"{code}: "))


def _parse_leading_error_code(reason: str) -> str:
    """Return the error code at the start of a job's failure reason, such as ``CODE`` in ``CODE: text``; else "".

    Jobs of an earlier version of the service state the code only at the start of the reason.
    """
    code, found, _ = reason.partition(": ")
    return code if found and code.isupper() and code.replace("_", "").isalpha() else ""


def _list_local_file_names(job: "DownloadJob") -> list[str]:
    """Return the names under which the files of a download job are saved.

    A name contains the start of the SHA-256, so that a download replaces only files with the same content.
    """
    totals, numbers, names = Counter(file["connection"] for file in job["files"]), Counter[str](), list[str]()
    for file in job["files"]:
        connection = file["connection"]
        numbers[connection] += 1
        number = f"-{numbers[connection]:04d}" if totals[connection] > 1 else ""
        # The last part of the path, so that no reply can name a file outside the folder.
        names.append(Path(f"{connection}{number}-{file['sha256'][:8]}.{job['format']}").name)
    return names
