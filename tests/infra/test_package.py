"""Tests that the deployment package is complete, minimal and reproducible."""

import fnmatch
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pathspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import package
from tests.service.local_service import ROOT

SECRETS = (
    *(".env", "prod.env", "admin.key", "keys.json", "checkpoint-key.pem", "local.settings.json", "outputs.json"),
    *(".data/hub.sqlite", ".azure/prod/.env", "functions/.env", "functions/signing.pem", "functions/keys.json"),
    *("shared/admin.key", "shared/.data/workspace.sqlite", "shared/provenance/prod.env", "static/keys.json"),
    *("static/.env", "static/console/admin.key", "static/keys.txt", "shared/__pycache__/old.py", "tests/test_a.py"),
    *("prices.yaml", "plant.yaml", "line-1.json", "line-1.json.checkpoint", "key", "checkpoint-key"),
    *("predicted/prod.json", ".azurite/blobs"),
)
"""Files that can lie in a checkout and never belong in a package."""


@pytest.fixture
def small_checkout(tmp_path: Path) -> Path:
    """Return a small checkout of a repository with built pages."""
    root = tmp_path / "checkout"
    for name in (*package.FILES, "functions/__init__.py", "shared/a.py", "shared/b/schema.graphql"):
        _write_file(root, name)
    for name in (*package.BUILT_PAGES, "static/console/index.html", "static/console/licenses.txt"):
        _write_file(root, name)
    return root


def _write_file(root: Path, name: str, content: str = "") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content or f"content of {name}")


def _build_wheel(folder: Path, name: str, files: Mapping[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)


def test_secrets_in_the_checkout_are_not_packed(small_checkout: Path) -> None:
    """The package contains no keys, environment files or data of the checkout."""
    before = package.collect_app_files(small_checkout)
    for name in SECRETS:
        _write_file(small_checkout, name)
    assert package.collect_app_files(small_checkout) == before
    assert set(before) == {
        *(*package.FILES, "functions/__init__.py", "shared/a.py", "shared/b/schema.graphql"),
        *("static/console/index.html", "static/console/licenses.txt"),
    }


def _run_git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


def test_only_tracked_files_of_the_app_are_packed(small_checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The package contains tracked files and built pages, but no untracked files."""
    before = package.collect_app_files(small_checkout)
    assert "is not a git repository" in capsys.readouterr().err
    _run_git(small_checkout, "init", "--quiet")
    _run_git(small_checkout, "add", *package.FILES, "functions", "shared")
    _write_file(small_checkout, "shared/my_settings.py", "KEY = 'secret'")
    _write_file(small_checkout, "functions/notes.py", "KEY = 'secret'")
    assert package.collect_app_files(small_checkout) == before
    assert (
        capsys.readouterr().err
        == "excluded, because git does not track it: functions/notes.py, shared/my_settings.py\n"
    )


@pytest.mark.parametrize("name", ["host.json", "shared/a.py", "static/console/index.html"])
@pytest.mark.parametrize("tracked", [True, False])
def test_symbolic_links_are_rejected(small_checkout: Path, name: str, *, tracked: bool) -> None:
    """A symbolic link among the package's files stops the build with the link's name, because it can lead to a key."""
    _write_file(small_checkout, "admin.key")
    (small_checkout / name).unlink()
    (small_checkout / name).symlink_to(small_checkout / "admin.key")
    if tracked:
        _run_git(small_checkout, "init", "--quiet")
        _run_git(small_checkout, "add", *package.FILES, "functions", "shared")
    with pytest.raises(package.PackageError, match=rf"symbolic links .*: {re.escape(name)}$"):
        package.collect_app_files(small_checkout)


def test_every_tracked_file_of_the_app_is_packed() -> None:
    """The package contains each tracked file in the app's folders."""
    for folder in ("functions", "shared"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert any(fnmatch.fnmatchcase(path.name, name) for name in package.FOLDERS[folder]), path


def test_nothing_that_funcignore_excludes_is_packed() -> None:
    """No path in the package matches a line of .funcignore."""
    lines = (ROOT / ".funcignore").read_text(encoding="utf-8").splitlines()
    excluded = pathspec.PathSpec.from_lines("gitignore", lines)
    files = [*package.FILES, *(str(path.relative_to(ROOT)) for path in (ROOT / "shared").rglob("*.py"))]
    # A dependency needs this file to verify certificates.
    files.append(".python_packages/lib/site-packages/certifi/cacert.pem")
    assert list(excluded.match_files(files)) == []


@pytest.mark.parametrize("ignore", [".funcignore", ".gitignore"])
def test_secrets_are_ignored_by_other_tools(ignore: str) -> None:
    """The ignore files of other tools exclude keys, environment files and data."""
    lines = (ROOT / ignore).read_text(encoding="utf-8").splitlines()
    excluded = pathspec.PathSpec.from_lines("gitignore", lines)
    names = [name for name in SECRETS if not name.endswith((".py", ".txt"))]
    assert [name for name in names if not excluded.match_file(name)] == []


def test_a_missing_part_of_the_package_stops_the_build(small_checkout: Path) -> None:
    """A missing file or folder, or pages that are not built, stop the build; the message names the missing part."""
    (small_checkout / "host.json").unlink()
    with pytest.raises(package.PackageError, match=r"host\.json is missing"):
        package.collect_app_files(small_checkout)
    _write_file(small_checkout, "host.json")
    (small_checkout / package.BUILT_PAGES[1]).unlink()
    with pytest.raises(package.PackageError, match=r"static/console/built is missing.*make assets"):
        package.collect_app_files(small_checkout)


def test_a_python_version_other_than_the_apps_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build rejects another Python version than the app's, because dependencies differ between versions."""
    monkeypatch.setattr("scripts.package.sys.version_info", (3, 12, 0))
    with pytest.raises(package.PackageError, match=r"Python 3\.13 is required"):
        package.download_wheels(tmp_path / "requirements.txt", tmp_path)


def test_only_modules_and_metadata_of_a_wheel_are_packed(tmp_path: Path) -> None:
    """The modules and the metadata of a wheel are packed; its scripts, headers and compiled files are not."""
    files = {"one/__init__.py": "1", "one-1.dist-info/RECORD": "r", "one/__pycache__/a.cpython-313.pyc": "c"}
    data = {"one-1.data/purelib/two.py": "2", "one-1.data/scripts/run": "s", "one-1.data/headers/a.h": "h"}
    _build_wheel(tmp_path, "one-1", files | data)
    expected = {"one/__init__.py": b"1", "one-1.dist-info/RECORD": b"r", "two.py": b"2"}
    prefix = package.SITE_PACKAGES
    assert package.collect_dependency_files(tmp_path) == {f"{prefix}/{name}": each for name, each in expected.items()}


def test_wheels_that_contradict_each_other_stop_the_build(tmp_path: Path) -> None:
    """Two wheels may contain the same file only if its content is equal."""
    _build_wheel(tmp_path, "one-1", {"common/__init__.py": "same", "one.py": "1"})
    _build_wheel(tmp_path, "two-1", {"common/__init__.py": "same", "two.py": "2"})
    assert len(package.collect_dependency_files(tmp_path)) == 3
    _build_wheel(tmp_path, "two-1", {"common/__init__.py": "other"})
    with pytest.raises(package.PackageError, match=r"two-1.* different files with the path common/__init__\.py"):
        package.collect_dependency_files(tmp_path)


@given(st.dictionaries(st.text("abc/", min_size=1, max_size=8), st.binary(max_size=64), max_size=8))
def test_the_archive_is_reproducible(tmp_path_factory: pytest.TempPathFactory, content: dict[str, bytes]) -> None:
    """The archive does not depend on the order of its files or the time of the build."""
    folder = tmp_path_factory.mktemp("archives")
    package.write_archive(content, folder / "one.zip")
    package.write_archive(dict(reversed(content.items())), folder / "two.zip")
    assert (folder / "one.zip").read_bytes() == (folder / "two.zip").read_bytes()
    with zipfile.ZipFile(folder / "one.zip") as archive:
        assert archive.namelist() == sorted(content)
        assert {entry.date_time[0] for entry in archive.infolist()} <= {1980}
        assert {entry.external_attr >> 16 for entry in archive.infolist()} <= {0o100644}
    shutil.rmtree(folder)


def test_the_listing_has_size_and_digest_of_each_file() -> None:
    """Each line of the listing contains size, digest and path of a file."""
    [line] = package.format_file_listing({"a.py": b"abc"}).splitlines()
    assert re.fullmatch(r" +3 ba7816bf[0-9a-f]{56} a\.py", line)


def test_every_dependency_is_pinned() -> None:
    """The constraints contain each requirement of the app with exactly the same version."""
    pinned = dict(
        re.findall(
            r"^([\w.-]+)==(\S+)$", (ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    named = re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", requirements, re.MULTILINE)
    assert {name.lower(): version for name, version in named}.items() <= {
        name.lower(): version for name, version in pinned.items()
    }.items()
    assert "azure-functions-runtime" in dict(named), "the platform would choose the version of the worker library"
