"""Runs the local host's HTTP server in the test process, so that tests can download stored files."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from local.http_server.admin import AdminHandler
from local.http_server.application import HttpApp
from local.http_server.files import SignedLinkHandler
from local.http_server.routes import RouteTable
from local.http_server.server import Server, build_server_url, open_listening_socket
from local.http_server.uploads import UploadCheck
from shared.backends.embedded.file_links import FileLinks


async def accept_upload(name: str) -> str:
    """Accept all uploads; the first part of a blob's name is the principal."""
    return name.partition("/")[0]


@asynccontextmanager
async def serve_files(data_dir: Path, check_upload: UploadCheck = accept_upload) -> AsyncIterator[FileLinks]:
    """Serve the files of a data directory, and yield the object that creates links to them."""
    listener = open_listening_socket("127.0.0.1", 0)
    links = FileLinks(build_server_url("127.0.0.1", listener), data_dir / "files-key")
    server = Server(
        HttpApp(RouteTable(), AdminHandler({}, {}), SignedLinkHandler(data_dir / "blobs", links, check_upload)), 1
    )
    serving = asyncio.create_task(server.serve([listener]))
    await server.listening.wait()
    try:
        yield links
    finally:
        server.should_exit = True
        await serving
