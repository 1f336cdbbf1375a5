"""Tests of the console's build: size, origins, security policy, and the console's unit tests."""

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from tests.node import find_node
from tests.service.local_service import ROOT

CONSOLE = ROOT / "console"
BUILT = ROOT / "static" / "console"
MOST_BYTES = 250_000
MOST_FIRST_BYTES = 150_000
KNOWN = re.compile(
    # Names of namespaces, which browsers do not fetch.
    r"http://www\.w3\.org/(2000/svg|1999/xlink|1999/xhtml|1998/Math/MathML)"
)
needs_build = pytest.mark.skipif(
    not (BUILT / "index.html").is_file(), reason="the console is not built; run `make assets` (needs npm)"
)
needs_packages = pytest.mark.skipif(
    find_node() is None or not (CONSOLE / "node_modules" / ".bin").is_dir(),
    reason="the console's packages are not installed; run `make assets` (needs npm)",
)


def test_roles_have_the_rights_of_the_service() -> None:
    """In the source of the console, each role has the same access rights as in the service."""
    rights = re.findall(r'"(Workspace\.[\w.]+)"', (CONSOLE / "src/session/rights.ts").read_text(encoding="utf-8"))
    assert sorted(rights) == sorted(AccessRight)
    roles = (CONSOLE / "src/session/roles.ts").read_text(encoding="utf-8")
    lists = {
        name: re.findall(r'"(Workspace\.[\w.]+)"', text)
        for name, text in re.findall(r"const (\w+): [^=]+= \[(.*?)\];", roles, re.DOTALL)
    }
    viewer = {*(right for right in rights if right.endswith(".Read")), *lists["VIEWER"]}
    assert viewer == ROLE_RIGHTS[Role.VIEWER]
    assert viewer | set(lists["EDITOR"]) == ROLE_RIGHTS[Role.EDITOR]


@needs_build
def test_compressed_build_is_smaller_than_250_kb() -> None:
    """All files of the console together are smaller than 250 kB when compressed."""
    sizes = [len(gzip.compress(path.read_bytes(), mtime=0)) for path in BUILT.rglob("*") if path.is_file()]
    assert 10_000 < sum(sizes) < MOST_BYTES


@needs_build
@pytest.mark.parametrize("first_page", ["Inbox", "Overview"])
def test_compressed_first_page_is_at_most_150_kb(first_page: str) -> None:
    """The files that the first page loads are at most 150 kB when compressed."""
    page = (BUILT / "index.html").read_text(encoding="utf-8")
    files = {BUILT / name for name in re.findall(r'(?:src|href)="/console/([^"]+)"', page)}
    script = next(BUILT.glob(f"assets/{first_page}-*.js"))
    charts = set(BUILT.glob("assets/uPlot*"))
    files |= _list_imported_scripts(script) | {script, *BUILT.glob(f"assets/{first_page}-*.css")}
    if first_page == "Overview":
        files |= charts
    sizes = {path.name: len(gzip.compress(path.read_bytes(), mtime=0)) for path in files}
    assert 10_000 < sum(sizes.values()) <= MOST_FIRST_BYTES, sizes
    assert not any(name.startswith("Queries") for name in sizes), "the editor is loaded on demand"
    assert first_page == "Overview" or not files & charts, "charts are loaded on demand"


def _list_imported_scripts(script: Path) -> set[Path]:
    """Return the scripts that a script imports, directly or indirectly."""
    found: set[Path] = set()
    pending = [script]
    while pending:
        text = pending.pop().read_text(encoding="utf-8")
        names = re.findall(r'from"\./([\w.-]+\.js)"', text) + re.findall(r'import"\./([\w.-]+\.js)"', text)
        new = {BUILT / "assets" / name for name in names} - found
        found |= new
        pending.extend(new)
    return found


@needs_build
def test_no_file_contains_another_origin() -> None:
    """No file contains the address of another origin or executes text as code."""
    for path in BUILT.rglob("*"):
        if path.suffix in {".js", ".css", ".html", ".svg"}:
            text = KNOWN.sub("", path.read_text(encoding="utf-8"))
            assert re.findall(r"(?:https?|wss?)://[\w.-]+", text) == [], path.name
            assert re.findall(r"\beval\(|\bnew Function\(|sourceMappingURL", text) == [], path.name


@needs_build
def test_the_console_page_has_no_inline_code() -> None:
    """The page loads scripts and styles only from files, as its security policy requires."""
    page = (BUILT / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page) == []


@needs_packages
def test_unit_tests_of_the_console_pass() -> None:
    """The console's unit tests pass."""
    program = find_node()
    assert program is not None
    command = [program, "node_modules/vitest/vitest.mjs", "run", "--reporter=dot"]
    done = subprocess.run(command, cwd=CONSOLE, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
