"""Tests of signed links to files."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from shared.backends.embedded.file_links import FileLink, FileLinks, LinkPermission

LINK = FileLink("downloads", "a1/00 ä.csv", 'rig "1".csv', datetime(2026, 1, 5, tzinfo=UTC))


def split_url(url: str) -> tuple[str, str, dict[str, str]]:
    """Return the container, blob and query of a URL, decoded as by a server."""
    parts = urlsplit(url)
    container, _, name = parts.path.removeprefix("/files/").partition("/")
    return unquote(container), unquote(name), dict(parse_qsl(parts.query))


@pytest.fixture
def links(tmp_path: Path) -> FileLinks:
    """Return an object that creates and parses links with the key in a folder."""
    return FileLinks("http://127.0.0.1:7071/", tmp_path / "key")


@pytest.mark.parametrize("link", [LINK, replace(LINK, file_name="", permission=LinkPermission.WRITE)])
def test_a_file_link_is_parsed_to_its_permissions(links: FileLinks, link: FileLink) -> None:
    """Parsing a link's URL returns its permissions; names can contain any characters."""
    url = links.create_signed_url(link)
    assert url.startswith("http://127.0.0.1:7071/files/downloads/a1/")
    assert links.parse_link_if_signature_is_valid(*split_url(url)) == link


@pytest.mark.parametrize(
    "change",
    [
        {"container": "cold"},
        {"name": "a1/01.csv"},
        {"exp": "1900000000"},
        {"exp": "x"},
        {"exp": "9" * 30},
        {"exp": "\u0661"},
        {"file": "other.csv"},
        {"perm": "w"},
        {"perm": "x"},
        {"sig": ""},
        {"sig": "ü"},
    ],
)
def test_a_changed_file_link_is_invalid(links: FileLinks, change: dict[str, str]) -> None:
    """A link is invalid if its file, expiry or permission was changed."""
    container, name, query = split_url(links.create_signed_url(LINK))
    changed = {"container": container, "name": name, **query, **change}
    assert links.parse_link_if_signature_is_valid(changed.pop("container"), changed.pop("name"), changed) is None


def test_texts_cannot_move_between_the_parts_of_a_link(links: FileLinks) -> None:
    """The signature covers the length of each part of a link, so that characters cannot move between parts."""
    container, name, query = split_url(links.create_signed_url(replace(LINK, container="ab", name="c")))
    assert links.parse_link_if_signature_is_valid("a", "bc", query) is None
    assert links.parse_link_if_signature_is_valid(container, name, query) is not None


def test_the_key_of_file_links_survives_a_restart(tmp_path: Path) -> None:
    """Links of an earlier process are valid; another folder has another key."""
    url = FileLinks("http://a", tmp_path / "key").create_signed_url(LINK)
    assert FileLinks("http://b", tmp_path / "key").parse_link_if_signature_is_valid(*split_url(url)) == LINK
    assert FileLinks("http://a", tmp_path / "other").parse_link_if_signature_is_valid(*split_url(url)) is None


def test_no_link_is_valid_with_an_empty_key_file(links: FileLinks, tmp_path: Path) -> None:
    """If the key file is empty, no link is signed or accepted, because anyone could compute its signature."""
    query = split_url(links.create_signed_url(LINK))
    (tmp_path / "key").write_bytes(b"")
    restarted = FileLinks("http://127.0.0.1:7071/", tmp_path / "key")
    with pytest.raises(OSError, match="at least 32 bytes"):
        restarted.create_signed_url(LINK)
    with pytest.raises(OSError, match="at least 32 bytes"):
        restarted.parse_link_if_signature_is_valid(*query)
