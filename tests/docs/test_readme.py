"""Tests of the README's tour: every command runs and prints the output that the README shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from shared.auth.rights import ROLE_RIGHTS, Role
from shared.catalog.document import load_document
from tests.service.local_service import ROOT, Service

README = ROOT / "README.md"
STARTS = ("make run", "make test", "pip install ./client")
ADDRESS, DATA_DIR = "URL=http://127.0.0.1:7071", "export DATA_DIR=.data"


def read_commands_and_outputs() -> list[tuple[str, str]]:
    """Return each command of the README with the output that it shows."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def build_output_pattern(shown_output: str) -> re.Pattern[str]:
    """Return a pattern for an output.

    A line with only … matches any lines, and … within a line matches any text.
    """
    lines = shown_output.strip("\n").split("\n")
    return re.compile("\n".join(r"(.*\n)*?.*" if line.strip() == "…" else _build_line_pattern(line) for line in lines))


def _build_line_pattern(shown_line: str) -> str:
    return ".*".join(map(re.escape, shown_line.split("…")))


def install_command(folder: Path) -> Path:
    """Write the command `oi` into a folder, as the installation of the client does, and return the folder."""
    command = folder / "bin" / "oi"
    command.parent.mkdir()
    source = shlex.quote(str(ROOT / "client" / "src"))
    python = shlex.quote(sys.executable)
    command.write_text(f'#!/bin/sh\nPYTHONPATH={source} exec {python} -m oi "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return command.parent


def test_the_tour_prints_the_shown_outputs(plant: Service, tmp_path: Path) -> None:
    """If all commands of the tour run in order in one shell, each prints the output that the README shows.

    A command fails only if the README shows its error.
    """
    tour = [(command, output) for command, output in read_commands_and_outputs() if not command.startswith(STARTS)]
    assert len(tour) > 10
    mark = "=====8<====="
    script = "\n".join(f'{_adapt_command(command, plant)}\necho "{mark} $?"' for command, _ in tour)
    path = f"{install_command(tmp_path)}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PATH": path, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    *parts, _ = re.split(rf"{mark} (\d+)\n", done.stdout)
    outputs, statuses = parts[::2], parts[1::2]
    assert len(outputs) == len(tour), f"the shell ended after {len(outputs)} commands\n{done.stdout}\n{done.stderr}"
    for (command, expected), output, status in zip(tour, outputs, statuses, strict=True):
        shown = output.strip("\n")
        assert build_output_pattern(expected).fullmatch(shown), (
            f"$ {command}\n{shown}\n{done.stderr}\nis not\n{expected}"
        )
        has_failed = status != "0"
        assert has_failed == expected.startswith("error: "), f"$ {command}\nexit status {status}\n{done.stderr}"


def test_the_tour_names_addresses_only_at_its_start() -> None:
    """After its first commands, the tour contains no literal address, data directory or file name."""
    commands = [command for command, _ in read_commands_and_outputs() if not command.startswith(STARTS)]
    assert commands[:2] == [ADDRESS, DATA_DIR]
    for command in commands[2:]:
        assert not any(place in command for place in ("127.0.0.1", "localhost", ".data", "/tmp/")), command


def test_the_tour_shows_the_rights_of_the_role() -> None:
    """The tour shows the access rights of the member's role together with the right that the README adds."""
    path = ROOT / "samples" / "workspace.yaml"
    document = load_document(path.read_text(encoding="utf-8"), path.name)
    [editor] = [member for member in document.team if member.id == "editor@plant-a.example"]
    assert editor.role is Role.EDITOR
    [extra] = editor.rights
    assert extra not in ROLE_RIGHTS[editor.role]
    [named] = re.findall(r"grants this member `(.+?)`", README.read_text(encoding="utf-8"))
    assert named == extra


def _build_retry_loop(command: str, text: str) -> str:
    # What a reader's idle machine does in two seconds may take a loaded one longer.
    there = f"[[ $out == *{shlex.quote(text)}* ]]"
    return f'for _ in {{1..60}}; do out=$({command}); {there} && break; sleep 1; done; echo "$out"'


def _adapt_command(command: str, plant: Service) -> str:
    here = {ADDRESS: f"URL={plant.url}", DATA_DIR: f"export DATA_DIR={shlex.quote(str(plant.data_dir))}"}
    command = here.get(command, command).replace(".venv/bin/python", shlex.quote(sys.executable))
    if command.startswith("sleep 2; "):
        command = _build_retry_loop(command.removeprefix("sleep 2; "), '"n": 1,')
    return command
