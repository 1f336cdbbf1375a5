"""Tests that each package has an exact version, so that installations are repeatable."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"
NODE_PROJECTS = sorted(path.parent for path in ROOT.glob("*/package.json")) + sorted(
    path.parent for path in ROOT.glob("*/*/package.json") if path.parent.name != "node_modules"
)
EXACT = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")
RANGE = re.compile(r"\*|[\^~<>=v]*\s*\d[\w.*+-]*(\s*(\|\||-|\s)\s*[\^~<>=v]*\s*\d?[\w.*+-]*)*|npm:.+@.*\d.*")
"""A version range, which a locked version meets for good; a tag such as ``latest`` and an address are none."""
ENVIRONMENTS = {
    ".venv": ("dev.txt", "constraints.txt"),
    ".venv-infra": ("infra.txt", "constraints-infra.txt"),
    ".venv-audit": ("audit.txt", "constraints-audit.txt"),
    ".venv-bench": ("bench.txt", "constraints-bench.txt"),
    ".venv-clients": ("clients.txt", "constraints-clients.txt"),
    ".venv-uv": ("uv.txt", "constraints-uv.txt"),
    ".venv-azure-cli": ("azure-cli.txt", "constraints-azure-cli.txt"),
}
LIST = (
    "import importlib.metadata as metadata, json; "
    "print(json.dumps({d.metadata['Name']: d.version for d in metadata.distributions()}))"
)
NOT_INSTALLED_BY_US = {"pip"}  # part of Python
WITHOUT_DEPENDENCIES = "infra-types.txt"


def normalise_name(name: str) -> str:
    """Return the normalised name of a Python package."""
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def read_pins(path: Path) -> dict[str, str]:
    """Return the packages of a requirements or constraints file that have exact versions."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        requirement = line.partition("#")[0].strip()
        if requirement and not requirement.startswith("-"):
            name, _, version = requirement.partition("==")
            assert re.fullmatch(r"[0-9][0-9A-Za-z.]*", version), f"{path.name}: {line} is not an exact version"
            found[normalise_name(name)] = version
    return found


def list_requirement_files(path: Path) -> Iterator[Path]:
    """Yield a requirements file and the requirements files that it includes."""
    yield path
    for included in re.findall(r"^-r (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        yield from list_requirement_files(path.parent / included)


@pytest.mark.parametrize(
    "path",
    [
        ROOT / "requirements.txt",
        *sorted(each for each in REQUIREMENTS.glob("*.txt") if not each.name.startswith("constraints")),
    ],
    ids=lambda path: path.name,
)
def test_requirements_have_exact_versions_equal_to_the_constraints(path: Path) -> None:
    """Each requirements file has exact versions, equal to those in the constraints of its installation."""
    direct = read_pins(path)
    assert direct
    if path.name == WITHOUT_DEPENDENCIES:
        return
    used = [
        file.parent / each
        for file in list_requirement_files(path)
        for each in re.findall(r"^-c (\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(used) == 1
    constraints = read_pins(used[0])
    assert {name: constraints.get(name) for name in direct} == direct


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_installed_package_is_pinned(environment: str) -> None:
    """Each package in an environment, also an indirect requirement, has the version of the constraints."""
    requirements, constraints = ENVIRONMENTS[environment]
    # make check and make bench create these environments; they possibly do not exist yet.
    if not (ROOT / environment / "bin" / "python").exists():
        return
    if environment == ".venv-uv" and not (ROOT / environment / "bin" / "uv").exists():
        return  # uv could not be installed, so pip installs the packages
    command = [str(ROOT / environment / "bin" / "python"), "-c", LIST]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
    installed = {normalise_name(name): version for name, version in listed.items() if name not in NOT_INSTALLED_BY_US}
    pinned = read_pins(REQUIREMENTS / constraints)
    if environment == ".venv-infra":
        pinned |= read_pins(REQUIREMENTS / WITHOUT_DEPENDENCIES)
    assert installed == pinned, f"install requirements/{requirements} again, then update requirements/{constraints}"


@pytest.mark.parametrize("project", NODE_PROJECTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_node_packages_are_exact_and_locked(project: Path) -> None:
    """Direct npm packages have exact versions; the lock file has digest and address of each package."""
    package = json.loads((project / "package.json").read_text(encoding="utf-8"))
    direct = package.get("dependencies", {}) | package.get("devDependencies", {})
    assert [f"{name} {version}" for name, version in direct.items() if not EXACT.fullmatch(version)] == []
    overrides = package.get("overrides", {})
    lock: dict[str, Any] = json.loads((project / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert lock[""].get("dependencies", {}) | lock[""].get("devDependencies", {}) == direct
    for place, entry in lock.items():
        if place:
            assert "integrity" in entry, place
        own = overrides.get(place.rpartition("node_modules/")[2], {})
        for name, wanted in (entry.get("dependencies", {}) | entry.get("optionalDependencies", {})).items():
            assert RANGE.fullmatch(wanted.strip()) or EXACT.fullmatch(own.get(name, "")), f"{place}: {name} {wanted}"


@pytest.mark.parametrize(
    "version", ["latest", "next", "", "git+https://a/b.git#1", "github:a/b", "https://a/b-1.2.3.tgz"]
)
def test_tags_and_addresses_do_not_count_as_exact_versions(version: str) -> None:
    """A tag or an address in place of a version does not count as an exact version."""
    assert RANGE.fullmatch(version) is None
