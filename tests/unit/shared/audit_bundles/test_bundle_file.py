"""Tests of the zip file of an audit bundle."""

import hashlib
import threading
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.audit_bundles.bundle_file import BundleFile
from shared.runtime import SYSTEM_RUNTIME


async def yield_parts() -> AsyncIterator[bytes]:
    """Yield the content of an entry in parts."""
    for part in (b"first ", b"", b"second"):
        yield part


async def write_bundle(path: Path) -> dict[str, str]:
    """Write a bundle with two entries, and return their digests."""
    async with BundleFile(path, SYSTEM_RUNTIME) as file:
        await file.write_entry("a.txt", b"content")
        await file.write_entry_in_parts("chains/b.json", yield_parts())
    return file.digests


async def test_each_bundle_entry_has_its_digest(tmp_path: Path) -> None:
    """The digest of an entry equals the digest of its content, even if the content is written in parts."""
    digests = await write_bundle(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.read("chains/b.json") == b"first second"
        assert digests == {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


async def test_the_list_of_entries_is_written_in_a_worker_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of entries at the end of the file, which is long for many receipts, does not block the event loop."""
    threads: list[threading.Thread] = []
    close = zipfile.ZipFile.close

    def close_and_record_thread(file: zipfile.ZipFile) -> None:
        threads.append(threading.current_thread())
        close(file)

    monkeypatch.setattr(zipfile.ZipFile, "close", close_and_record_thread)
    await write_bundle(tmp_path / "a.zip")
    assert threads[0] is not threading.main_thread()


async def test_bundles_with_equal_content_are_equal_byte_for_byte(tmp_path: Path) -> None:
    """Two bundles with equal content are equal byte for byte, so that people can compare them."""
    for name in ("a.zip", "b.zip"):
        await write_bundle(tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
