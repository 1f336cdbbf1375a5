"""Tests of the check that validates the Azure commands on the operators' pages."""

import json
from pathlib import Path

import pytest

from scripts.azure_commands import (
    AZD_OPTIONS,
    NOT_IN_THE_CORE,
    PAGES,
    SCRIPTS,
    find_azd_error_or_empty,
    iterate_commands,
)

TABLE = json.loads(AZD_OPTIONS.read_text(encoding="utf-8"))


def _find_commands(tmp_path: Path, text: str) -> list[list[str]]:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return [list(command.words) for command in iterate_commands(page)]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("az login", [["az", "login"]]),
        ('az group show -n "$NAME" \\\n  --query id', [["az", "group", "show", "-n", "VALUE", "--query", "id"]]),
        (
            'id=$(az a b --x "$(az c d | head -1)" -o tsv)',
            [["az", "a", "b", "--x", "VALUE", "-o", "tsv"], ["az", "c", "d"]],
        ),
        (
            "az a list |\n  xargs -r -n1 az a delete --ids",
            [["az", "a", "list"], ["az", "a", "delete", "--ids", "VALUE"]],
        ),
        ("az a b > file 2>/dev/null # comment", [["az", "a", "b"]]),
        ("az a b --query \"[?x=='y'].z | [0]\"", [["az", "a", "b", "--query", "[?x=='y'].z | [0]"]]),
        ("echo 'use az login' \"or az login\"", []),
        ("if az a b; then azd up; fi", [["az", "a", "b"], ["azd", "up"]]),
    ],
)
def test_all_commands_of_a_code_block_are_found(tmp_path: Path, block: str, expected: list[list[str]]) -> None:
    """All commands in a code block are found, also in substitutions, after pipes and after xargs."""
    assert _find_commands(tmp_path, f"```sh\n{block}\n```\n") == expected


def test_inline_commands_are_found_unless_they_are_shortened(tmp_path: Path) -> None:
    """A command between backticks is checked, unless three dots mark it as shortened."""
    text = "Run `az group delete -n NAME` or `az group list | head -1`, not `az deployment ... create`, nor `make az`."
    assert _find_commands(tmp_path, text) == [["az", "group", "delete", "-n", "NAME"], ["az", "group", "list"]]


def test_every_page_with_a_command_is_checked() -> None:
    """The check finds the many Azure CLI commands in pages and scripts.

    Commands of CLI extensions are listed by name.
    """
    texts = [" ".join(command.words) for path in (*PAGES, *SCRIPTS) for command in iterate_commands(path)]
    assert len(texts) > 100
    for name in NOT_IN_THE_CORE:
        assert any(text.startswith(name) for text in texts), name


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("azd up", ""),
        ("azd up --no-prompt", ""),
        ("azd env new dev --location x --subscription y", ""),
        ("azd env new dev --region x", "unknown option --region"),
        ("azd publish", "unknown command"),
    ],
)
def test_azd_commands_outside_the_table_are_reported(command: str, error: str) -> None:
    """A command or option of azd is reported if the table of azd commands does not contain it."""
    assert find_azd_error_or_empty(tuple(command.split(" ")), TABLE) == error


def test_the_azd_table_contains_each_call_of_pages_and_scripts() -> None:
    """The table of azd commands, which names its source, contains each azd call of pages and scripts."""
    assert TABLE["source"].startswith("https://github.com/Azure/azure-dev/")
    for path in (*PAGES, *SCRIPTS):
        for command in iterate_commands(path, ("azd",)):
            assert find_azd_error_or_empty(command.words, TABLE) == "", command
