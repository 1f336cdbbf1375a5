"""The console's build: size, origins and security policy; and its unit tests."""

import gzip
import re
import subprocess

import pytest

from tests.node import find_node
from tests.service.local_service import ROOT

CONSOLE = ROOT / "console"
BUILT = ROOT / "static" / "console"
MOST_BYTES = 250_000
KNOWN = re.compile(
    # Names of namespaces, which browsers do not fetch.
    r"http://www\.w3\.org/(2000/svg|1999/xlink|1999/xhtml|1998/Math/MathML)"
)
needs_build = pytest.mark.skipif(
    not (BUILT / "index.html").is_file(), reason="the console is not built: make assets needs npm"
)
needs_packages = pytest.mark.skipif(
    find_node() is None or not (CONSOLE / "node_modules" / ".bin").is_dir(),
    reason="the console's packages are not installed: make assets needs npm",
)


@needs_build
def test_build_is_small() -> None:
    """All files together are smaller than 250 kB compressed."""
    sizes = [len(gzip.compress(path.read_bytes(), mtime=0)) for path in BUILT.rglob("*") if path.is_file()]
    assert 10_000 < sum(sizes) < MOST_BYTES


@needs_build
def test_no_file_contains_another_origin() -> None:
    """No file contains an address of another origin or evaluates text as code."""
    for path in BUILT.rglob("*"):
        if path.suffix in {".js", ".css", ".html", ".svg"}:
            text = KNOWN.sub("", path.read_text(encoding="utf-8"))
            assert re.findall(r"(?:https?|wss?)://[\w.-]+", text) == [], path.name
            assert re.findall(r"\beval\(|\bnew Function\(|sourceMappingURL", text) == [], path.name


@needs_build
def test_page_has_no_inline_code() -> None:
    """The page loads scripts and styles only as files, as its policy requires."""
    page = (BUILT / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page) == []


@needs_packages
def test_unit_tests_pass() -> None:
    """The console's unit tests pass."""
    program = find_node()
    assert program is not None
    command = [program, "node_modules/vitest/vitest.mjs", "run", "--reporter=dot"]
    done = subprocess.run(command, cwd=CONSOLE, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
