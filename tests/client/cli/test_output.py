"""Tests of the JSON values that commands read."""

import io
import json

import click
import pytest
from oi.cli.main import execute
from oi.cli.output import read_json

INVALID = ["", "{", '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e400}', '{"a": "\\ud800"}', "[" * 100_000]


@pytest.mark.parametrize("text", INVALID)
def test_files_that_the_service_could_not_read(text: str) -> None:
    """Text that is not JSON, or that JSON cannot express, is wrong usage before a request is sent."""
    with pytest.raises(click.UsageError, match="is not JSON"):
        read_json(io.StringIO(text))


@pytest.mark.parametrize("text", [*INVALID, "[]", "7"])
@pytest.mark.parametrize("option", ["--original", "--amended"])
def test_options_that_are_no_object(text: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An option for a JSON object refuses other values, and the error names the option."""
    values = {"--original": "{}", "--amended": "{}", option: text}
    names = ["--scope", "s", "--entity-type", "t", "--entity-id", "i", "--reason-category", "other"]
    arguments = [*names, *(part for pair in values.items() for part in pair)]
    assert execute(["amendments", "create", *arguments]) == 2
    assert f"'{option}'" in capsys.readouterr().err


def test_a_file_is_read_as_it_is() -> None:
    """A valid file is read without changes."""
    value = {"a": [1, None, "\u00e9", 0.1], "b": {}}
    assert read_json(io.StringIO(json.dumps(value))) == value
