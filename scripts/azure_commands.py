"""Check that the ``az`` and ``azd`` commands in documentation and scripts are valid (``make check-commands``).

Run this script with the Python of ``.venv-azure-cli``. The parser of Azure CLI checks each call of ``az``, except the
commands in ``NOT_IN_THE_CORE`` and ``VARIABLE_COMMANDS``, and executes nothing. Each call of ``azd``, which is not a
Python package, is compared with ``scripts/azd_options.json``. The exit code is 1 if a command is invalid.
"""

import importlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
AZURE_PAGES = [
    ROOT / "docs" / page
    for page in (
        "tutorial/deploy-to-azure.md",
        "how-to/deploy-from-github.md",
        "how-to/networks-failover-restore.md",
        "how-to/optional-parts-on-azure.md",
        "how-to/upgrade-on-azure.md",
        "reference/azure.md",
    )
]
PAGES = [*AZURE_PAGES, ROOT / "docs" / "how-to" / "operate.md"]
SCRIPTS = sorted(path for path in (ROOT / "scripts" / "azure").iterdir() if path.is_file())
AZD_OPTIONS = ROOT / "scripts" / "azd_options.json"
VALUE = "VALUE"
"""Replacement of variables and of the output of commands."""

NOT_IN_THE_CORE = {
    "az kusto cluster list",
    "az kusto cluster-principal-assignment create",
    "az kusto cluster-principal-assignment delete",
    "az kusto cluster stop",
    "az kusto database-principal-assignment create",
    "az kusto database-principal-assignment delete",
    "az kusto database-principal-assignment list",
    "az monitor app-insights query",
    "az monitor scheduled-query delete",
}
"""Commands of extensions, which the package azure-cli lacks; they are not parsed."""
KNOWN_BAD = ("az", "group", "show", "--name", VALUE, "--no-such-option", VALUE)
"""A call that the parser must reject; otherwise the parser checks nothing."""
VARIABLE_COMMANDS = {"az deployment sub VALUE"}
"""Commands with a variable in their name; tests/infra/test_workflows.py runs them."""


@dataclass(frozen=True)
class Command:
    """Call of ``az`` or ``azd`` in a page or script; every variable in it is replaced by ``VALUE``.

    Attributes:
        place: name of the file that contains the call.
        words: name of the program and its arguments.
    """

    place: str
    words: tuple[str, ...]


def iterate_shell_code(path: Path) -> Iterator[str]:
    """Yield the shell code in a file: a whole script, or the ``sh`` blocks and inline commands of a Markdown page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        yield re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
        return
    yield from re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`((?:az|azd) [^`]+)`", prose):
        if "..." not in span:
            yield span.replace("\n", " ").replace(r"\|", "|")


def iterate_commands(path: Path, programs: tuple[str, ...] = ("az", "azd")) -> Iterator[Command]:
    """Yield each call of the programs in a file, including calls inside ``$(...)`` and after ``xargs``."""
    for text in iterate_shell_code(path):
        joined = text.replace("\\\n", " ")
        for start in re.finditer(rf"(?:^|(?<=[\s(|;&`]))(?:{'|'.join(programs)})(?= [a-z$\"])", joined, re.MULTILINE):
            before = joined[: start.start()]
            if _is_inside_quotes_at_end(before) or before.endswith(("command -v ", "predict ")):
                continue
            words = _split_shell_words(joined[start.start() :])
            if re.search(r"xargs [^|\n]*$", before):
                words.append(VALUE)
            yield Command(path.name, tuple(words))


def _is_inside_quotes_at_end(shell_text: str) -> bool:
    """Return whether a quotation is still open at the end of a shell text.

    Text inside ``$(...)`` is unquoted.
    """
    line = shell_text.rpartition("\n")[2]
    inside = line.rpartition("$(")[2]
    return inside.count('"') % 2 == 1 or inside.count("'") % 2 == 1


def _split_shell_words(text: str) -> list[str]:
    """Split the first command of a shell text into words; the first pipe, semicolon or redirection ends the command."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    position = 0
    while position < len(text):
        char = text[position]
        if quote != "'" and text.startswith("$(", position):
            position = _find_closing_parenthesis(text, position + 2)
            word = (word or "") + VALUE
        elif quote:
            if char == quote:
                quote = ""
            elif char == "\\" and quote == '"':
                position += 1
                word = (word or "") + text[position]
            else:
                word = (word or "") + char
        elif char in "'\"":
            quote, word = char, word or ""
        elif char in "|;&)\n<>`" or (char == "#" and word is None):
            # The number of a redirected descriptor is not a word.
            if char in "<>" and word in {"1", "2"}:
                word = None
            break
        elif char in " \t":
            words += [] if word is None else [word]
            word = None
        else:
            word = (word or "") + char
        position += 1
    words += [] if word is None else [word]
    return [_replace_shell_variables(each) for each in words if each not in {"$@", "${network[@]}"}]


def _find_closing_parenthesis(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one directly before the position ``start``."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[start], 0)
        start += 1
    return start - 1


def _replace_shell_variables(word: str) -> str:
    """Replace each shell variable in a word, such as ``$name`` or ``${name}``, by ``VALUE``."""
    return re.sub(r"\$\{[^}]*\}|\$\w+", VALUE, word)


class AzureCli:
    """Parser of Azure CLI, which checks commands without executing them."""

    def __init__(self) -> None:
        """Load all commands of the core of Azure CLI with their options, which takes about a minute."""
        # Imported by name, because the tests and the type checker run in an environment without azure-cli.
        cli: Any = importlib.import_module("azure.cli.core").get_default_cli()
        importlib.import_module("azure.cli.core.file_util").create_invoker_and_load_cmds_and_args(cli)
        self._parser = cli.invocation.parser
        commands = set(cli.invocation.commands_loader.command_table)
        self._names = commands | {name.rpartition(" ")[0] for name in commands}

    def find_error_or_empty(self, words: tuple[str, ...]) -> str:
        """Return the error message for a call of ``az``; an empty text if the call is valid.

        A call that consists only of the name of a command or group is valid if that name exists.
        """
        if " ".join(words[1:]) in self._names:
            return ""
        log = StringIO()
        try:
            with redirect_stderr(log):
                self._parser.parse_args(list(words[1:]))
        except SystemExit:
            return log.getvalue().strip().partition("\n")[0] or "rejected by the parser of Azure CLI"
        return ""


def find_azd_error_or_empty(words: tuple[str, ...], azd_options: dict[str, Any]) -> str:
    """Return the error message for a call of ``azd``, or an empty text if the call is valid.

    Args:
        words: the call, from the name of the program on.
        azd_options: valid commands and options of ``azd``.
    """
    arguments = words[1:]
    count = next((n for n in range(len(arguments), 0, -1) if " ".join(arguments[:n]) in azd_options["commands"]), 0)
    if not count:
        return "unknown command"
    allowed = {*azd_options["global"], *azd_options["commands"][" ".join(arguments[:count])]}
    unknown = [word for word in arguments[count:] if word.startswith("-") and word.partition("=")[0] not in allowed]
    return f"unknown option {', '.join(unknown)}" if unknown else ""


def main() -> int:
    """Check every command in the documentation and scripts, print the invalid ones, and return the exit code."""
    os.environ["AZURE_CORE_COLLECT_TELEMETRY"] = "false"
    table = json.loads(AZD_OPTIONS.read_text(encoding="utf-8"))
    commands = [command for path in (*PAGES, *SCRIPTS) for command in iterate_commands(path)]
    found: list[str] = []
    skipped: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AZURE_CONFIG_DIR"] = folder
        cli = AzureCli()
        if not cli.find_error_or_empty(KNOWN_BAD):
            found.append(f"{' '.join(KNOWN_BAD)} is not rejected: the parser of Azure CLI checks nothing")
        for command in commands:
            text = " ".join(command.words)
            exception = next((name for name in NOT_IN_THE_CORE | VARIABLE_COMMANDS if text.startswith(name)), "")
            if exception:
                skipped.add(exception)
                continue
            error = (
                find_azd_error_or_empty(command.words, table)
                if command.words[0] == "azd"
                else cli.find_error_or_empty(command.words)
            )
            if error:
                found.append(f"{command.place}: {text}\n  {error}")
    found += [f"scripts/azure_commands.py: no page contains {name}" for name in NOT_IN_THE_CORE - skipped]
    report = [*found, f"{len(commands)} commands of az and azd; not parsed: {', '.join(sorted(skipped))}"]
    sys.stdout.write("".join(f"{line}\n" for line in report))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
