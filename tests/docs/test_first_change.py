"""Tests that the steps of docs/tutorial/your-first-change.md work on a copy of the repository."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.test_readme import build_output_pattern

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial" / "your-first-change.md").read_text(encoding="utf-8")
# These folders are not changed by the page and are linked, not copied.
LINKED = (".venv", ".venv-clients", ".venv-uv", "bench", "console", "emulators", "infra", "local", "static", "web")
MAX_SECONDS = 600
_BLOCK = re.compile(r"(?P<lead>(?:[^\n]+\n)*)\n```(?P<language>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_NEW = re.compile(r"New file `(?P<path>[^`]+)`:$")
_INSERTION = re.compile(r"In\s`(?P<path>[^`]+)`,\sinsert\safter\s`(?P<line>.+)`:$")


@dataclass(frozen=True)
class NewFile:
    """File that a step creates."""

    path: str
    text: str

    def apply(self, folder: Path) -> None:
        """Create the file."""
        target = folder / self.path
        assert not target.exists(), f"{self.path} exists already"
        target.write_text(self.text, encoding="utf-8")


@dataclass(frozen=True)
class Insertion:
    """Lines that a step inserts below a line of a file."""

    path: str
    line: str
    text: str

    def apply(self, folder: Path) -> None:
        """Insert the lines below the line, which must occur exactly once in the file."""
        target = folder / self.path
        text = target.read_text(encoding="utf-8")
        assert text.count(f"\n{self.line}\n") == 1, f"{self.path} does not contain exactly one line {self.line!r}"
        target.write_text(text.replace(f"\n{self.line}\n", f"\n{self.line}\n{self.text}"), encoding="utf-8")


@dataclass(frozen=True)
class Commands:
    """Commands of a code block, each with the output that the page shows."""

    steps: tuple[tuple[str, str], ...]

    def apply(self, folder: Path) -> None:
        """Run the commands and compare the outputs."""
        # The cache of the repository makes mypy fast; its entries depend on relative paths only.
        environment = {**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache"), "NO_COLOR": "1"}
        environment.pop("PYTEST_ADDOPTS", None)
        for command, shown in self.steps:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=MAX_SECONDS,
            )
            output = done.stdout.strip("\n")
            assert done.returncode == 0, f"$ {command}\n{output}\n{done.stderr}"
            assert build_output_pattern(shown).fullmatch(output), f"$ {command}\n{output}\nis not\n{shown}"


def list_steps() -> Iterator[NewFile | Insertion | Commands]:
    """Yield the steps of the page in their order."""
    for block in _BLOCK.finditer(PAGE):
        lead, text = block["lead"].strip(), block["text"]
        if block["language"] == "console":
            parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
            commands = [part.partition("\n") for part in parts]
            yield Commands(tuple((command, output) for command, _, output in commands))
        elif new := _NEW.search(lead):
            yield NewFile(new["path"], text)
        elif insertion := _INSERTION.search(lead):
            yield Insertion(insertion["path"], insertion["line"], text)


@pytest.fixture
def repository_copy(tmp_path: Path) -> Path:
    """Return a copy of the repository's files, with links to the folders that the steps do not change."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    for name in listed.stdout.split("\0"):
        source, target = ROOT / name, folder / name
        if source.is_file() and name.partition("/")[0] not in LINKED:
            target.parent.mkdir(parents=True, exist_ok=True)
            # The times of the files stay the same, so that the caches of mypy apply.
            shutil.copy2(source, target)
    return folder


def test_each_code_block_belongs_to_a_step() -> None:
    """Each code block is a file, an insertion or a command; shell commands that prepare or finish are excepted."""
    steps = list(list_steps())
    blocks = re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)
    assert len(steps) == len(blocks) - blocks.count("sh")
    assert {type(step) for step in steps} == {NewFile, Insertion, Commands}


def test_the_steps_of_the_tutorial_work(repository_copy: Path) -> None:
    """If the steps are applied in order, each change fits its file, and each command prints the displayed output."""
    for step in list_steps():
        step.apply(repository_copy)
