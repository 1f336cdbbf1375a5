"""Tests that the package needs only its own files and the standard library."""

import asyncio
import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pathspec
import pytest

from functions import BLUEPRINTS
from scripts.package import FILES, FOLDERS, SITE_PACKAGES
from scripts.smoke.checks import CHECKS
from tests.package.conftest import PACKAGE, Cloud
from tests.service.local_service import ROOT

pytestmark = pytest.mark.package


async def test_the_package_passes_the_smoke_test(cloud: Cloud, tmp_path: Path) -> None:
    """Each function of the package is indexed, the smoke test passes, and data survives a restart of the app."""
    packed = _list_files(cloud.folder)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(await asyncio.to_thread(cloud.create_keys)))
    records = []
    for _ in range(2):
        app = await asyncio.to_thread(cloud.start)
        try:
            _fetch_pages(cloud.url)
            records.append(await asyncio.to_thread(_run_smoke_test, cloud, keys))
        finally:
            report = await asyncio.to_thread(app.stop)
        _check_that_only_modules_of_the_package_are_loaded(report, cloud)
    assert records[1] > records[0], "the second run did not find the records of the first one"
    assert _list_files(cloud.folder) == packed, "the app wrote files into its folder"


def test_the_package_contains_only_the_app() -> None:
    """The archive has sorted entries with fixed times, no compiled files, and no file that .funcignore excludes."""
    excluded = pathspec.PathSpec.from_lines("gitignore", (ROOT / ".funcignore").read_text().splitlines())
    with zipfile.ZipFile(PACKAGE) as archive:
        names = archive.namelist()
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names == sorted(names)
    assert not [name for name in names if name.endswith(".pyc")]
    own = [name for name in names if not name.startswith(SITE_PACKAGES)]
    assert list(excluded.match_files(own)) == []
    assert {name.partition("/")[0] for name in own} == {*FILES, *FOLDERS}
    built = {path.relative_to(ROOT / "static") for path in (ROOT / "static").rglob("*") if path.is_file()}
    assert {Path(name).relative_to("static") for name in own if name.startswith("static/")} == {
        path for path in built if path.name != "built"
    }


def _fetch_pages(url: str) -> None:
    """Fetch the console's page and the files that it loads."""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        assert client.get("/healthz").status_code == 200
        page = client.get("/console/")
        assert page.status_code == 200
        loaded = re.findall(r'(?:src|href)="([^"]+\.(?:js|css))"', page.text)
        assert loaded
        assert {client.get(page.url.join(name)).status_code for name in loaded} == {200}


def _run_smoke_test(cloud: Cloud, keys: Path) -> int:
    """Run the smoke test and return the number of exported records."""
    command = [str(ROOT / "scripts" / "smoke.sh"), cloud.url, str(keys)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nthe log says: {cloud.log.read_text()[-5000:]}"
    assert lines[-1] == f"{len(CHECKS)} checks, 0 failed, 0 not available", done.stdout
    exported = re.search(r"^ok +export +(\d+) records", done.stdout, re.MULTILINE)
    assert exported, done.stdout
    return int(exported[1])


def _check_that_only_modules_of_the_package_are_loaded(report: dict[str, Any], cloud: Cloud) -> None:
    folder = cloud.folder.resolve()
    assert report["elsewhere"] == []
    assert (report["path"][0], report["path"][-1]) == (str(folder / SITE_PACKAGES), str(folder))
    assert not any("-packages" in path for path in report["path"][1:])
    assert report["functions"] == sum(len(blueprint._function_builders) for blueprint in BLUEPRINTS)


def _list_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}
