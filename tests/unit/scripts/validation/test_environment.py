"""Tests of the description of the software and the machine that were validated."""

import hashlib
import platform
import subprocess
from pathlib import Path

import pytest

from scripts.validation.clauses import PAGE
from scripts.validation.environment import describe_environment


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project folder with the files that the description covers."""
    (tmp_path / PAGE).parent.mkdir(parents=True)
    (tmp_path / PAGE).write_text("page")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "constraints.txt").write_text("a==1\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "plant"\nversion = "1.2.3"\n')
    return tmp_path


def test_version_and_environment_are_described(project: Path) -> None:
    """The description has the version, the digests of the page and of the package list, and the installed packages."""
    found = describe_environment(project)
    assert (found.facts["Product"], found.facts["Version"]) == ("plant", "1.2.3")
    assert found.facts[f"SHA-256 of {PAGE}"] == hashlib.sha256(b"page").hexdigest()
    assert platform.python_version() in found.facts["Python"]
    assert "unknown" in found.facts["Commit"]
    assert found.packages["pytest"] == pytest.__version__


def test_changes_that_are_not_committed_are_named(project: Path) -> None:
    """The report lists uncommitted changes, because then the commit alone was not validated."""
    commands = (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"],
    )
    for arguments in commands:
        subprocess.run(["git", "-C", str(project), *arguments], check=True, capture_output=True)
    commit = describe_environment(project).facts["Commit"]
    assert len(commit) == 40
    (project / "new.py").write_text("1")
    with_file = describe_environment(project).facts["Commit"]
    (project / "new.py").write_text("2")
    with_other_file = describe_environment(project).facts["Commit"]
    (project / PAGE).write_text("other")
    with_change = describe_environment(project).facts["Commit"]
    assert len({commit, with_file, with_other_file, with_change}) == 4
    assert all(each.startswith(f"{commit}, with changes") for each in (with_file, with_other_file, with_change))
