"""The README's tour is true: every command runs, every output is what it shows."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running import ROOT, Service, eventually

README = ROOT / "README.md"
STARTS = ("make run", "make test")


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return the sample plant, running, with its simulators' first readings in the table."""
    running = Service(tmp_path_factory.mktemp("readme") / "data", ROOT / "samples" / "workspace.yaml").start()
    viewer = running.caller("viewer@plant-a.example")
    address = "/oi-api/warm-queries/latest-readings?p.connection=chiller-sim&limit=2"
    eventually(lambda: viewer.get(address).json()["rowCount"], lambda rows: rows == 2)
    yield running
    running.stop()


def steps() -> list[tuple[str, str]]:
    """Return each command of the README with the output that it shows."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def pattern(output: str) -> re.Pattern[str]:
    """Return what an output must look like; a line of … stands for any lines, … in a line for anything in it."""
    lines = output.strip("\n").split("\n")
    return re.compile("\n".join(r"(.*\n)*?.*" if line.strip() == "…" else _line(line) for line in lines))


def _line(shown: str) -> str:
    return ".*".join(map(re.escape, shown.split("…")))


def test_the_tour_is_true(plant: Service, tmp_path: Path) -> None:
    """Run from top to bottom in one shell, every command gives the output that stands below it."""
    tour = [(command, output) for command, output in steps() if not command.startswith(STARTS)]
    assert len(tour) > 10
    mark = "=====8<====="
    script = "\n".join(f"{_here(command, plant, tmp_path)}\necho '{mark}'" for command, _ in tour)
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    outputs = done.stdout.split(f"{mark}\n")
    for (command, expected), output in zip(tour, outputs, strict=False):
        shown = output.strip("\n")
        assert pattern(expected).fullmatch(shown), f"$ {command}\n{shown}\n{done.stderr}\nis not\n{expected}"


def _awaited(command: str, text: str) -> str:
    # What a reader's idle machine does in two seconds may take a loaded one longer.
    there = f"[[ $out == *{shlex.quote(text)}* ]]"
    return f'for _ in {{1..60}}; do out=$({command}); {there} && break; sleep 1; done; echo "$out"'


def _here(command: str, plant: Service, folder: Path) -> str:
    # The folder first: the data directory's own path may begin the same way.
    for there, here in (
        ("/tmp/", f"{folder}/"),
        ("http://127.0.0.1:7071", plant.url),
        (".data/", f"{plant.data_dir}/"),
        (".venv/bin/python", sys.executable),
    ):
        command = command.replace(there, here)
    if command.startswith("sleep 2; "):
        command = _awaited(command.removeprefix("sleep 2; "), '"n": 1,')
    replay = f" --url {plant.url} --key-file {plant.data_dir}/keys.json" if "local.replay" in command else ""
    return command + replay
