"""Tests of the blob stores with the real SDK and prepared error replies, which Azurite does not give."""

import base64
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shared.backends.azure.blobs import AzureBlobStore, BlobAccount
from shared.backends.azure.checkpoint_blobs import BlobCheckpointStore
from shared.errors import WorkspaceError

KEY = base64.b64encode(b"k" * 32).decode()
FIRST_PART = 32 * 1024 * 1024
"""Number of bytes that the SDK requests first of a blob; it requests the rest with the ETag of the first reply."""


class BlobService(ThreadingHTTPServer):
    """Fake blob service that rejects each write, and each read with a condition.

    Args:
        error_code: error code of the rejected writes.
    """

    def __init__(self, error_code: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.error_code = error_code

    def open_account(self) -> BlobAccount:
        """Return a client of the service."""
        url = f"http://127.0.0.1:{self.server_address[1]}/a"
        return BlobAccount("", connection_string=f"AccountName=a;AccountKey={KEY};BlobEndpoint={url}", retries=0)


class _Handler(BaseHTTPRequestHandler):
    server: BlobService

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._reject(409, self.server.error_code)

    def do_HEAD(self) -> None:
        self._send_headers(200, {"Content-Length": str(2 * FIRST_PART)})

    def do_GET(self) -> None:
        if self.headers["If-Match"]:
            self._reject(412, "ConditionNotMet")
            return
        content_range = f"bytes 0-{FIRST_PART - 1}/{2 * FIRST_PART}"
        self._send_headers(206, {"Content-Length": str(FIRST_PART), "Content-Range": content_range})
        self.wfile.write(bytes(FIRST_PART))

    def _reject(self, status: int, code: str) -> None:
        self._send_headers(status, {"Content-Length": "0", "x-ms-error-code": code})

    def _send_headers(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        common = {"ETag": '"1"', "Last-Modified": "Mon, 05 Jan 2026 08:00:00 GMT", "x-ms-blob-type": "BlockBlob"}
        for name, value in {**common, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Iterator[BlobService]:
    """Yield a running service; the test's parameter is the error code of rejected writes."""
    with BlobService(getattr(request, "param", "")) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("service", ["BlobAlreadyExists", "BlobImmutableDueToPolicy"], indirect=True)
async def test_an_existing_blob_is_not_created(service: BlobService) -> None:
    """If a blob with the name exists, nothing is stored, and the store says so."""
    account = service.open_account()
    assert not await AzureBlobStore(account, "cold").create_if_missing("a", b"1")
    assert not await BlobCheckpointStore(account).create_if_missing("chain/000000000001", b"note")
    await account.close()


@pytest.mark.parametrize("service", ["ContainerBeingDeleted", "AccountBeingCreated"], indirect=True)
async def test_a_blob_whose_container_cannot_store_it_is_unavailable(service: BlobService) -> None:
    """A reply 409 for another reason than an existing blob is UNAVAILABLE, because nothing is stored."""
    account = service.open_account()
    with pytest.raises(WorkspaceError) as caught:
        await AzureBlobStore(account, "cold").create_if_missing("a", b"1")
    assert caught.value.code == "BLOB_STORE_UNAVAILABLE"
    with pytest.raises(WorkspaceError) as caught:
        await BlobCheckpointStore(account).create_if_missing("chain/000000000001", b"note")
    assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"
    await account.close()


READS: dict[str, Callable[[AzureBlobStore, Path], Awaitable[object]]] = {
    "read": lambda store, _: store.read("a"),
    "download_to_file": lambda store, folder: store.download_to_file("a", folder / "a"),
}


@pytest.mark.parametrize("name", READS)
async def test_a_blob_that_is_replaced_during_a_read_is_unavailable(
    service: BlobService, tmp_path: Path, name: str
) -> None:
    """If a blob is replaced between two requests of one read, the read raises UNAVAILABLE and can be repeated."""
    store = AzureBlobStore(service.open_account(), "cold")
    with pytest.raises(WorkspaceError) as caught:
        await READS[name](store, tmp_path)
    assert caught.value.code == "BLOB_STORE_UNAVAILABLE"
    await store.close()
