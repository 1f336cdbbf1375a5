"""Blobs as files: what names reach, several processes, and what a crash leaves."""

import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.backends.embedded.blobs import DRAFTS, FolderBlobStore, blob_path
from shared.backends.embedded.file_links import FileLink, FileLinks

BASE = "http://127.0.0.1:7071"
LATER = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "a//b", "a/", "..", "a/../b", "../b", "a/./b", ".hidden", "a\\b", "a\0b", "a\nb", "x" * 256],
)
async def test_names_that_no_blob_has(tmp_path: Path, name: str) -> None:
    """A name that could lead out of the folder, or to a file that is being written, is refused by every method."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks(BASE, tmp_path / "key"))
    for call in (store.create(name, b""), store.read(name), store.upload(name, tmp_path), store.delete([name])):
        with pytest.raises(ValueError, match="invalid name of a blob"):
            await call


@given(st.text())
def test_a_name_stays_below_its_folder(name: str) -> None:
    """Whatever a name is made of, its file lies below the folder or there is none."""
    folder = Path("/data/cold")
    try:
        path = blob_path(folder, name)
    except ValueError:
        return
    assert path.resolve().is_relative_to(folder)
    assert path != folder


async def test_what_a_crash_left_is_no_blob(tmp_path: Path) -> None:
    """Half a draft is neither listed nor in the way of the blob."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks(BASE, tmp_path / "key"))
    (tmp_path / "cold" / DRAFTS).mkdir(parents=True)
    (tmp_path / "cold" / DRAFTS / "a.0123").write_bytes(b"half")
    assert [blob async for blob in store.list("")] == []
    assert await store.create("a", b"whole")
    assert await FolderBlobStore(tmp_path / "cold", FileLinks(BASE, tmp_path / "key")).read("a") == b"whole"


async def test_what_a_crash_left_goes_after_a_while(tmp_path: Path) -> None:
    """A draft of long ago is removed by the next process that writes; one that may still be written to stays."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks("", tmp_path / "key"))
    await store.create("a", b"x")
    drafts = tmp_path / "cold" / DRAFTS
    for name, age in (("old", 7200), ("young", 60)):
        (drafts / name).write_bytes(b"half")
        os.utime(drafts / name, (time.time() - age,) * 2)
    await FolderBlobStore(tmp_path / "cold", FileLinks("", tmp_path / "key")).create("b", b"x")
    assert [draft.name for draft in drafts.iterdir()] == ["young"]


def test_the_key_of_links_is_its_owners_alone(tmp_path: Path) -> None:
    """The key file has mode 0600, and a second process makes and takes the same links."""
    linked = FileLink("downloads", "j/1.csv", "rig.csv", LATER)
    url = FileLinks(BASE, tmp_path / "key").create(linked)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert FileLinks(BASE, tmp_path / "key").create(linked) == url
    assert FileLinks(BASE, tmp_path / "other").create(linked) != url


@given(st.text(min_size=1), st.text(), st.integers(0, 2**31))
def test_a_link_comes_back_as_it_was_made(
    tmp_path_factory: pytest.TempPathFactory, name: str, file: str, at: int
) -> None:
    """Any name survives the address, and no other container, name, file or time passes with its signature."""
    try:
        (name + file).encode()
    except UnicodeEncodeError:
        return
    links = FileLinks(BASE, tmp_path_factory.getbasetemp() / "links-key")
    linked = FileLink("downloads", name, file, datetime.fromtimestamp(at, UTC))
    parts = urlsplit(links.create(linked))
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = unquote(parts.path.removeprefix("/files/downloads/"))
    assert links.read("downloads", path, query) == linked
    assert links.read("cold", path, query) is None
    assert links.read("downloads", path + "x", query) is None
    assert links.read("downloads", path, query | {"file": file + "x"}) is None
    later = int((linked.expires_at + timedelta(days=1)).timestamp())
    assert links.read("downloads", path, query | {"exp": str(later)}) is None
    for sig in ("", "0" * 64, "ü", query["sig"].upper() + "x"):
        assert links.read("downloads", path, query | {"sig": sig}) is None
