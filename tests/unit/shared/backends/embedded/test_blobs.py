"""Tests of blobs in files: names, concurrent processes, and files that a crash left behind."""

import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.backends.embedded.blobs import DRAFTS, FolderBlobStore, build_blob_path
from shared.backends.embedded.file_links import FileLink, FileLinks
from shared.errors import WorkspaceError
from shared.runtime import Runtime

BASE = "http://127.0.0.1:7071"
LATER = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "a//b", "a/", "..", "a/../b", "../b", "a/./b", ".hidden", "a\\b", "a\0b", "a\nb", "x" * 256],
)
async def test_invalid_blob_names_are_rejected(tmp_path: Path, name: str) -> None:
    """Each method rejects a blob name that leads outside of the folder or to an unfinished file."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks(BASE, tmp_path / "key"))
    for call in (
        store.create_if_missing(name, b""),
        store.read(name),
        store.upload(name, tmp_path),
        store.delete([name]),
    ):
        with pytest.raises(ValueError, match="is not a valid name of a blob"):
            await call


@given(st.text())
def test_the_file_of_a_blob_name_is_in_the_folder(name: str) -> None:
    """The file of each valid name is in the folder."""
    folder = Path("/data/cold")
    try:
        path = build_blob_path(folder, name)
    except ValueError:
        return
    assert path.resolve().is_relative_to(folder)
    assert path != folder


async def test_an_unfinished_file_is_not_a_blob(tmp_path: Path) -> None:
    """An unfinished file that a crash left behind is not listed and does not prevent storing the blob."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks(BASE, tmp_path / "key"))
    (tmp_path / "cold" / DRAFTS).mkdir(parents=True)
    (tmp_path / "cold" / DRAFTS / "a.0123").write_bytes(b"half")
    assert [blob async for blob in store.list("")] == []
    assert await store.create_if_missing("a", b"whole")
    assert await FolderBlobStore(tmp_path / "cold", FileLinks(BASE, tmp_path / "key")).read("a") == b"whole"


async def test_a_failed_upload_leaves_no_unfinished_file(tmp_path: Path) -> None:
    """If the source of an upload cannot be read, no unfinished file remains."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks(BASE, tmp_path / "key"))
    with pytest.raises(WorkspaceError, match="does not respond"):
        await store.upload("a", tmp_path)
    assert list((tmp_path / "cold" / DRAFTS).iterdir()) == []


async def test_old_unfinished_files_are_deleted(tmp_path: Path) -> None:
    """The next write deletes old unfinished files, but not recent files, which another process is possibly writing."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks("", tmp_path / "key"))
    await store.create_if_missing("a", b"x")
    drafts = tmp_path / "cold" / DRAFTS
    for name, age in (("old", 7200), ("young", 60)):
        (drafts / name).write_bytes(b"half")
        os.utime(drafts / name, (time.time() - age,) * 2)
    await FolderBlobStore(tmp_path / "cold", FileLinks("", tmp_path / "key")).create_if_missing("b", b"x")
    assert [draft.name for draft in drafts.iterdir()] == ["young"]


async def test_unfinished_files_are_deleted_again_after_an_hour(tmp_path: Path) -> None:
    """A store deletes old unfinished files each hour, because a file was too recent at the start of the process."""
    clock = [0.0]
    store = FolderBlobStore(
        tmp_path / "cold", FileLinks("", tmp_path / "key"), runtime=Runtime(monotonic=lambda: clock[0])
    )
    draft = tmp_path / "cold" / DRAFTS / "old"
    await store.create_if_missing("a", b"x")
    draft.write_bytes(b"half")
    os.utime(draft, (time.time() - 7200,) * 2)
    for name, seconds, exists in (("b", 3599.0, True), ("c", 3600.0, False)):
        clock[0] = seconds
        await store.create_if_missing(name, b"x")
        assert draft.exists() == exists


async def test_empty_folders_are_deleted_with_their_last_blob(tmp_path: Path) -> None:
    """Deleting blobs also deletes folders that become empty, but never the folder of the container."""
    store = FolderBlobStore(tmp_path / "downloads", FileLinks("", tmp_path / "key"))
    for name in ("j1/a/1.csv", "j1/2.csv", "j2/3.csv"):
        await store.create_if_missing(name, b"x")
    await store.delete(["j1/a/1.csv", "j2/3.csv"])
    assert sorted(each.name for each in (tmp_path / "downloads").iterdir()) == [DRAFTS, "j1"]
    assert [each.name for each in (tmp_path / "downloads" / "j1").iterdir()] == ["2.csv"]
    await store.delete(["j1/2.csv", "j1/2.csv", "missing/4.csv"])
    assert [each.name for each in (tmp_path / "downloads").iterdir()] == [DRAFTS]


@pytest.mark.parametrize("method", ["create", "upload"])
async def test_a_folder_removed_meanwhile_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A blob is stored even if another process removes its empty folder just before."""
    store = FolderBlobStore(tmp_path / "downloads", FileLinks("", tmp_path / "key"))
    folder, removals = tmp_path / "downloads" / "j1", [1, 2]
    make = Path.mkdir

    def create_then_remove(path: Path, *arguments: Any, **options: Any) -> None:
        make(path, *arguments, **options)
        if path == folder and removals:
            removals.pop()
            path.rmdir()

    monkeypatch.setattr(Path, "mkdir", create_then_remove)
    if method == "create":
        assert await store.create_if_missing("j1/1.csv", b"x")
    else:
        (tmp_path / "source").write_bytes(b"x")
        await store.upload("j1/1.csv", tmp_path / "source")
    assert (removals, await store.read("j1/1.csv")) == ([], b"x")


def test_only_the_owner_can_read_the_key_of_links(tmp_path: Path) -> None:
    """The key file has mode 0600; a second process creates and accepts the same links."""
    linked = FileLink("downloads", "j/1.csv", "rig.csv", LATER)
    url = FileLinks(BASE, tmp_path / "key").create_signed_url(linked)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert FileLinks(BASE, tmp_path / "key").create_signed_url(linked) == url
    assert FileLinks(BASE, tmp_path / "other").create_signed_url(linked) != url


@given(st.text(min_size=1), st.text(), st.integers(0, 2**31))
def test_a_link_is_parsed_as_created(tmp_path_factory: pytest.TempPathFactory, name: str, file: str, at: int) -> None:
    """Parsing a link to a blob returns the blob's name; a link to another container, name, file or time is invalid."""
    try:
        (name + file).encode()
    except UnicodeEncodeError:
        return
    links = FileLinks(BASE, tmp_path_factory.getbasetemp() / "links-key")
    linked = FileLink("downloads", name, file, datetime.fromtimestamp(at, UTC))
    parts = urlsplit(links.create_signed_url(linked))
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = unquote(parts.path.removeprefix("/files/downloads/"))
    assert links.parse_link_if_signature_is_valid("downloads", path, query) == linked
    assert links.parse_link_if_signature_is_valid("cold", path, query) is None
    assert links.parse_link_if_signature_is_valid("downloads", path + "x", query) is None
    assert links.parse_link_if_signature_is_valid("downloads", path, query | {"file": file + "x"}) is None
    later = int((linked.expires_at + timedelta(days=1)).timestamp())
    assert links.parse_link_if_signature_is_valid("downloads", path, query | {"exp": str(later)}) is None
    for sig in ("", "0" * 64, "ü", query["sig"].upper() + "x"):
        assert links.parse_link_if_signature_is_valid("downloads", path, query | {"sig": sig}) is None
