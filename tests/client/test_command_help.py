"""Tests that the help of the command `oi` is complete and loads quickly."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from oi.cli.main import execute, main

from tests.service.local_service import ROOT

FILES = (
    "rule.json",
    "query.json",
    "item.json",
    "webhook.json",
    "plant.yaml",
    "rig.csv",
    "day1.csv",
    "day2.csv",
    "gateway.yaml",
)
WITHOUT_JSON = (
    ("audit", "export"),
    ("audit", "fetch"),
    ("completion",),
    ("gateway", "check"),
    ("gateway", "run"),
    ("logout",),
    ("verify-file",),
)
SLOW = ("httpx", "rich", "pydantic", "cryptography", "websockets", "asyncio", "oi.models", "oi._sync", "keyring")


def list_commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that can be executed, for example ``audit fetch``."""
    if not isinstance(command, click.Group):
        yield words
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from list_commands(below, (*words, name))


COMMANDS = list(list_commands(main))


def read_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the help of a command."""
    # The offline verifier prints its help itself, and then ends the process.
    with suppress(SystemExit):
        execute([*words, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_command_has_examples(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The help of each command has examples, which use options that exist."""
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).touch()
    text = read_help(words, capsys).replace("\\\n", " ")
    examples = [
        shlex.split(each.partition(" > ")[0]) for each in re.findall(r"^ +(?:.*\| )?(oi .+)$", text, re.MULTILINE)
    ]
    own = [example[1 + len(words) :] for example in examples if tuple(example[1 : 1 + len(words)]) == words]
    assert own, text
    command: click.Command = main
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    answers = ["--yes"] if any(each.name == "yes" for each in command.params) else []
    for arguments in own:
        with command.make_context(words[-1], [*arguments, *answers]) as context:
            assert not context.args


@pytest.mark.parametrize("words", sorted(set(COMMANDS) - set(WITHOUT_JSON)), ids=" ".join)
def test_each_command_can_print_json(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Each command has the option --json, except commands that run a program, print text or write a file."""
    assert "--json" in read_help(words, capsys)


def test_the_readme_lists_the_commands_without_json() -> None:
    """The README of the client names each command without the option --json."""
    text = (ROOT / "client" / "README.md").read_text(encoding="utf-8")
    [sentence] = re.findall(r"takes `--json` for programs; (.*?) do not\.", text, re.DOTALL)
    assert {tuple(each.split()) for each in re.findall("`([^`]+)`", sentence)} == set(WITHOUT_JSON)


def test_help_imports_no_slow_library() -> None:
    """`oi --help` imports no library that loads slowly."""
    program = f"import sys; from oi.cli.main import execute; execute(['--help']); print(set(sys.modules) & set({SLOW}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client" / "src")}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.splitlines()[-1] == "set()"
    listed = set(re.findall(r"^  ([a-z][a-z-]*) {2,}[A-Z]", run.stdout, re.MULTILINE))
    assert listed == {words[0] for words in COMMANDS}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each supported shell has a completion script, which requests the possible words from the command `oi`."""
    assert execute(["completion", shell]) == 0
    assert "_OI_COMPLETE" in capsys.readouterr().out


def test_partial_words_of_oi_are_completed() -> None:
    """The command prints the subcommands and options with which a partial word can continue."""
    words = {"_OI_COMPLETE": "bash_complete", "COMP_WORDS": "oi query ", "COMP_CWORD": "2"}
    completed = CliRunner().invoke(main, env=words, prog_name="oi").output
    assert "plain,run" in completed.split()


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["query", "run"], ["tail", "--count", "0"], ["audit", "append", "--after-state", "[1]"]]
)
def test_wrong_usage_of_oi_ends_with_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage is explained on standard error and ends with exit code 2."""
    assert execute(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--help" in captured.err
