"""Tests of the reader of the KQL language file."""

import pytest

from emulators.kusto.extensions.language import read_kql_function_descriptions


@pytest.mark.parametrize(("kind", "name"), [("functions", "strcat"), ("aggregates", "dcount")])
def test_functions_and_aggregates_of_the_language_file_are_found_by_name(kind: str, name: str) -> None:
    """A function or aggregate is found by its name, with its signatures."""
    symbol = read_kql_function_descriptions(kind)[name]
    assert symbol["name"] == name
    assert symbol["signatures"]


def test_functions_and_aggregates_of_the_language_file_are_separate() -> None:
    """The functions of the language file contain no aggregate, and the aggregates contain no function."""
    assert "dcount" not in read_kql_function_descriptions("functions")
    assert "strcat" not in read_kql_function_descriptions("aggregates")


def test_the_language_file_is_parsed_once() -> None:
    """The functions of the language file are parsed only once in a process."""
    assert read_kql_function_descriptions("functions") is read_kql_function_descriptions("functions")
