"""Describes the version of the project and the environment in which its tests ran."""

import hashlib
import platform
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from scripts.validation.clauses import PAGE

_CONSTRAINTS: Final = "requirements/constraints.txt"


@dataclass(frozen=True, slots=True)
class Environment:
    """Version of the project, and the computer and packages with which its tests ran.

    Attributes:
        facts: values that the report shows, by name, for instance the version and the operating system.
        packages: version of each installed Python package.
    """

    facts: Mapping[str, str]
    packages: Mapping[str, str]


def describe_environment(root: Path) -> Environment:
    """Return the version of the project in a folder, and a description of this computer and its Python packages.

    Args:
        root: folder of the project.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    facts = {
        "Product": str(project["name"]),
        "Version": str(project["version"]),
        "Commit": _describe_commit(root),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "Operating system": platform.platform(),
        "Computer": f"{platform.node()} ({platform.machine()})",
        f"SHA-256 of {PAGE}": _compute_file_sha256(root / PAGE),
        f"SHA-256 of {_CONSTRAINTS}": _compute_file_sha256(root / _CONSTRAINTS),
    }
    packages = {each.metadata["Name"]: each.version for each in distributions()}
    return Environment(facts, dict(sorted(packages.items(), key=lambda item: item[0].lower())))


def _describe_commit(root: Path) -> str:
    """Return the id of the checked-out commit and, if files differ from it, a digest of the differences."""
    commit = _run_git_or_none(root, "rev-parse", "HEAD")
    if commit is None:
        return "unknown: the folder is no Git repository"
    changes = _run_git_or_none(root, "diff", "HEAD") or ""
    new_files = (_run_git_or_none(root, "ls-files", "-z", "--others", "--exclude-standard") or "").split("\0")
    hashes = [f"{name} {_compute_file_sha256(root / name)}" for name in new_files if (root / name).is_file()]
    if not changes and not hashes:
        return commit
    digest = hashlib.sha256("\n".join((changes, *hashes)).encode()).hexdigest()
    return f"{commit}, with changes that are not committed (SHA-256 of the changes: {digest})"


def _run_git_or_none(root: Path, *arguments: str) -> str | None:
    try:
        run = subprocess.run(  # noqa: S603  fixed arguments
            ["git", "-C", str(root), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return run.stdout.strip()


def _compute_file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
