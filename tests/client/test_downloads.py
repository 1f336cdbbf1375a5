"""Tests of downloads that fail or are cancelled, and of the links to their files, in the client."""

import ssl
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from oi import ApiError, UnreachableError, Workspace


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
    """The error about a failed download contains the reason and the error code of the service.

    Jobs of an earlier service have the code only at the start of the reason.
    """
    code = "DOWNLOAD_QUOTA_EXCEEDED"
    error = find_download_error({"error": f"{code}: The files exceed 50 GiB.", "errorCode": code})
    assert (error.code, error.detail) == (code, "The files exceed 50 GiB.")
    for job in ({}, {"errorCode": None}):
        error = find_download_error({"error": f"{code}: The files exceed 50 GiB.", **job})
        assert (error.code, error.detail) == (code, "The files exceed 50 GiB.")
    error = find_download_error({"error": "STATION_4: the log contains the reason.", "errorCode": None})
    assert (error.code, error.detail) == ("", "STATION_4: the log contains the reason.")


def test_the_error_about_a_cancelled_download_states_the_status() -> None:
    """The error about a download that ended without a reason states the status of the download."""
    error = find_download_error({"status": "cancelled", "error": None, "errorCode": None})
    assert error.detail == "The download is cancelled."


class FakeService:
    """Fake service with a completed download, whose files have links that change with each request for its state.

    Attributes:
        files: pairs of connection and path of the files.
        answers: replies to the requests for files before the service sends them; None sends the file.
        links: links of the files that were requested.
    """

    def __init__(self, *answers: httpx.Response | Exception | None) -> None:
        self.answers = list(answers)
        self.files = [("rig", "/files/a.csv"), ("rig", "/files/b.csv")]
        self.links: list[str] = []
        self.states = 0

    def reply_to_request(self, request: httpx.Request) -> httpx.Response:
        """Return the state of the download, or a file."""
        if request.url.path.startswith("/oi-api/"):
            self.states += 1
            return httpx.Response(200, json=self._build_state())
        self.links.append(str(request.url.copy_with(scheme="http", host="h"))[len("http://h/files/") :])
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(200, content=request.url.path.encode()) if answer is None else answer

    def _build_state(self) -> dict[str, Any]:
        files = [
            {"connection": name, "url": f"{path}?sig={self.states}", "sha256": sha256(path.encode()).hexdigest()}
            for name, path in self.files
        ]
        return {"downloadId": "1", "status": "completed", "progress": {}, "format": "csv", "files": files}

    def save_files(self, folder: Path) -> list[Path]:
        """Save the files of a download with the client."""
        with Workspace("https://plant.example", token="t") as workspace:
            transport = httpx.MockTransport(self.reply_to_request)
            workspace._transport.client = httpx.Client(transport=transport, base_url="https://plant.example")
            download = workspace.downloads.connection("rig", start="2026-01-01T00:00:00Z", end="2026-01-02T00:00:00Z")
            return download.save(folder)


@pytest.fixture
def _skip_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oi._sync.downloads.sleep", lambda _seconds: None)


@pytest.mark.usefixtures("_skip_pauses")
@pytest.mark.parametrize(
    "failure",
    [httpx.Response(403, text="<Error>expired</Error>"), httpx.Response(503), httpx.ReadError("lost")],
    ids=["expired", "busy", "lost"],
)
def test_a_file_that_cannot_be_fetched_is_fetched_by_a_new_link(
    tmp_path: Path, failure: httpx.Response | Exception
) -> None:
    """If the link of a file has expired or its connection is lost, the file is fetched by a new link."""
    service = FakeService(None, failure)
    assert [each.read_text() for each in service.save_files(tmp_path)] == ["/files/a.csv", "/files/b.csv"]
    assert service.links == ["a.csv?sig=2", "b.csv?sig=2", "b.csv?sig=3"]


def test_an_invalid_certificate_ends_the_download_of_a_file(tmp_path: Path) -> None:
    """If the TLS certificate of the server of the files is invalid, the download ends after one attempt."""
    failure = httpx.ConnectError("certificate verify failed")
    failure.__cause__ = ssl.SSLCertVerificationError(1, "certificate verify failed")
    service = FakeService(failure)
    with pytest.raises(UnreachableError, match="certificate verify failed"):
        service.save_files(tmp_path)
    assert len(service.links) == 1


def test_files_are_named_by_their_connection(tmp_path: Path) -> None:
    """A file is saved in the folder with the name of its connection, a number if there are several, and its digest."""
    service = FakeService()
    service.files += [("press", "/files/c.csv"), ("../valve", "/files/d.csv")]
    digests = [sha256(path.encode()).hexdigest()[:8] for _, path in service.files]
    stems = ["rig-0001", "rig-0002", "press", "valve"]
    expected = [tmp_path / f"{stem}-{digest}.csv" for stem, digest in zip(stems, digests, strict=True)]
    assert service.save_files(tmp_path) == expected == service.save_files(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(expected)


def test_the_log_contains_no_signature_of_a_link(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log of the HTTP library names the requested files but not the signatures of their links."""
    caplog.set_level("DEBUG", "httpx")
    service = FakeService()
    service.save_files(tmp_path)
    assert service.links[0] == "a.csv?sig=2"
    assert "https://plant.example/files/a.csv" in caplog.text
    assert "sig=" not in caplog.text


@pytest.mark.usefixtures("_skip_pauses")
@pytest.mark.parametrize(("status", "attempts"), [(403, 5), (404, 1)])
def test_a_file_that_is_always_refused_ends_the_download(tmp_path: Path, status: int, attempts: int) -> None:
    """A file that is refused five times, or does not exist, ends the download with the error of the last attempt."""
    service = FakeService(*(httpx.Response(status) for _ in range(attempts)))
    with pytest.raises(ApiError) as refused:
        service.save_files(tmp_path)
    assert (refused.value.status, len(service.links)) == (status, attempts)
