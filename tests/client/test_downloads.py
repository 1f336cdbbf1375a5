"""Tests of downloads that fail or are cancelled, in the client."""

from typing import Any

import httpx
import pytest
from oi import ApiError, Workspace


def find_download_error(job: dict[str, Any]) -> ApiError:
    """Wait for a download in this state, and return the error that the client raises."""
    state = {"downloadId": "1", "status": "failed", "progress": {}, **job}
    with Workspace("https://plant.example", token="t") as workspace:
        transport = httpx.MockTransport(lambda _request: httpx.Response(200, json=state))
        workspace._transport.client = httpx.Client(transport=transport, base_url="https://plant.example")
        download = workspace.downloads.connection("rig", start="2026-01-01T00:00:00Z", end="2026-01-02T00:00:00Z")
        with pytest.raises(ApiError) as caught:
            download.wait()
    return caught.value


def test_the_error_about_a_failed_download_contains_the_reason() -> None:
    """The error about a failed download contains the reason and the error code of the service."""
    error = find_download_error({"error": "DOWNLOAD_QUOTA_EXCEEDED: The files exceed 50 GiB."})
    assert (error.code, error.detail) == ("DOWNLOAD_QUOTA_EXCEEDED", "The files exceed 50 GiB.")
    error = find_download_error({"error": "The scratch disk is full: 0 bytes left."})
    assert (error.code, error.detail) == ("", "The scratch disk is full: 0 bytes left.")


def test_the_error_about_a_cancelled_download_states_the_status() -> None:
    """The error about a download that ended without a reason states the status of the download."""
    assert find_download_error({"status": "cancelled", "error": None}).detail == "The download is cancelled."
