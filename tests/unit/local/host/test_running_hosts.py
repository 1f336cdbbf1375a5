"""Tests of the files that record running hosts."""

import json
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.host.running_hosts import find_host, record_host

ADDRESS = "http://127.0.0.1:7099"
APP = """
@app.route(route="x")
async def x(req: func.HttpRequest) -> str:
    return "x"
"""


def test_a_record_lasts_as_long_as_its_host(tmp_path: Path) -> None:
    """A host is found while it runs; at its end, its record is deleted."""
    assert find_host(tmp_path) is None
    with record_host(tmp_path, ADDRESS):
        host = find_host(tmp_path)
        assert host is not None
        assert host.address == ADDRESS
    assert find_host(tmp_path) is None
    assert list((tmp_path / "hosts").iterdir()) == []


def test_only_the_owner_can_read_a_record(tmp_path: Path) -> None:
    """Other users can neither read nor lock a host's record."""
    with record_host(tmp_path, ADDRESS):
        [record] = (tmp_path / "hosts").iterdir()
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700


def test_a_record_without_a_lock_is_stale(tmp_path: Path) -> None:
    """A record that is not locked is ignored, and the next host deletes it."""
    folder = tmp_path / "hosts"
    folder.mkdir()
    (folder / "0.json").write_text(json.dumps({"address": "http://127.0.0.1:1"}))
    assert find_host(tmp_path) is None
    with record_host(tmp_path, ADDRESS):
        host = find_host(tmp_path)
        assert host is not None
        assert host.address == ADDRESS
        assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("content", ["", "[]", "{}", "x"])
def test_a_record_without_an_address_is_ignored(tmp_path: Path, content: str) -> None:
    """A record that is locked but contains no address is ignored."""
    with record_host(tmp_path, ADDRESS):
        [record] = (tmp_path / "hosts").iterdir()
        record.write_text(content)
        assert find_host(tmp_path) is None


def test_a_record_that_others_can_write_is_ignored(tmp_path: Path) -> None:
    """A record that other users can write, or a link to a record, is ignored."""
    with record_host(tmp_path, ADDRESS):
        [record] = (tmp_path / "hosts").iterdir()
        target = record.rename(tmp_path / "elsewhere.json")
        record.symlink_to(target)
        assert find_host(tmp_path) is None
        record.unlink()
        target.rename(record)
        assert find_host(tmp_path) is not None
        record.chmod(0o620)
        assert find_host(tmp_path) is None


def test_hosts_of_one_folder_have_a_record_each(tmp_path: Path) -> None:
    """Two hosts of one folder have separate records."""
    with record_host(tmp_path, ADDRESS), record_host(tmp_path, "http://127.0.0.1:7098"):
        assert len(list((tmp_path / "hosts").iterdir())) == 2
        assert find_host(tmp_path) is not None


def test_a_killed_host_is_not_found(start_host: Any, http: httpx.Client) -> None:
    """After kill -9, the host's record is ignored, and the next host replaces it."""
    first = start_host(APP)
    found = find_host(first.data_dir)
    assert found is not None
    assert found.address == first.url
    assert http.get(f"{found.address}/x").text == "x"
    first.kill()
    assert len(list((first.data_dir / "hosts").iterdir())) == 1
    assert find_host(first.data_dir) is None
    second = start_host(APP)
    found = find_host(second.data_dir)
    assert found is not None
    assert found.address == second.url
    assert second.terminate() == 0
    assert find_host(second.data_dir) is None
