"""Tests of the client as a Python package: dependencies, documentation and examples."""

import ast
import doctest
import importlib
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from tests.service.local_service import ROOT

CLIENT = ROOT / "client"
SOURCE = CLIENT / "src"
PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = sorted(path for path in SOURCE.rglob("*.py") if "_sync" not in path.parts)
OWN = {"cbor2", "httpx", "click", "cryptography", "rfc8785", "rich", "tzdata", "websockets"}


def list_requirements(name: str, seen: set[str]) -> set[str]:
    """Return the direct and indirect requirements of a package on this platform."""
    if name in seen:
        return seen
    seen.add(name)
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return seen
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            list_requirements(requirement.name.lower(), seen)
    return seen


def list_server_packages() -> set[str]:
    """Return the names of the packages that the service pins."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return {Requirement(line.split("#")[0]).name.lower() for line in lines if line[:1].isalpha()}


def test_the_client_shares_only_declared_packages_with_the_service() -> None:
    """The client requires a package that the service also uses only if the client itself declares the package."""
    named = {Requirement(each).name.lower() for each in PROJECT["dependencies"]}
    assert named == OWN
    needed: set[str] = set()
    for name in named:
        list_requirements(name, needed)
    assert {"httpcore", "cffi"} <= needed
    assert not (needed & list_server_packages()) - OWN
    assert not [name for name in needed if name.startswith(("azure", "pydantic", "duckdb", "opentelemetry"))]


def test_the_client_has_time_zones_on_windows() -> None:
    """Windows has no time zones for Python, so the client requires them there, and only there."""
    (zones,) = (each for each in map(Requirement, PROJECT["dependencies"]) if each.name == "tzdata")
    assert zones.marker is not None
    assert zones.marker.evaluate({"sys_platform": "win32"})
    assert not zones.marker.evaluate({"sys_platform": "linux"})


@pytest.mark.parametrize("extra", ["arrow", "pandas", "polars"])
def test_each_extra_for_tables_contains_arrow(extra: str) -> None:
    """Each extra for tables contains pyarrow, because results become data frames by way of Arrow tables."""
    names = {Requirement(each).name for each in PROJECT["optional-dependencies"][extra]}
    assert "pyarrow" in names


def test_the_client_imports_only_declared_packages() -> None:
    """No module of the client imports the service or a package that is not declared."""
    extras = {Requirement(each).name.lower() for group in PROJECT["optional-dependencies"].values() for each in group}
    modules = {"paho-mqtt": "paho", "pyyaml": "yaml"}
    allowed = {modules.get(name, name) for name in OWN | extras} | {"oi"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                root = name.partition(".")[0]
                assert root in allowed or is_standard_module(root), f"{path}: {name}"


def is_standard_module(name: str) -> bool:
    """Return whether a module belongs to Python's standard library."""
    return name in STANDARD


STANDARD = frozenset(sys.stdlib_module_names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_each_public_name_is_documented(path: Path) -> None:
    """All public modules, classes, functions, methods and aliases have documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), path
    assert [name for name, documented in list_public_names(tree) if not documented] == []


def list_public_names(node: ast.Module | ast.ClassDef) -> Iterator[tuple[str, bool]]:
    """Yield the public names of a module or class, each with whether it has a docstring."""
    for each in node.body:
        if isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not each.name.startswith("_"):
            yield each.name, ast.get_docstring(each) is not None
            if isinstance(each, ast.ClassDef):
                yield from list_public_names(each)


def test_the_public_names_exist() -> None:
    """The package's list of public names is complete, and each name can be imported."""
    package = importlib.import_module("oi")
    names = {name for group in package._MODULES.values() for name in group}
    assert set(package.__all__) == names
    for name in names:
        assert getattr(package, name).__doc__


def import_modules_with_examples() -> Iterator[ModuleType]:
    """Import each module of the client that may have examples, and yield it."""
    for path in FILES:
        if ">>> " in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            yield importlib.import_module(name)


def test_docstring_examples_print_the_shown_output() -> None:
    """Each example in a docstring prints the output that is shown there."""
    results = [doctest.testmod(module) for module in import_modules_with_examples()]
    assert sum(result.attempted for result in results) >= 10
    assert [result for result in results if result.failed] == []
