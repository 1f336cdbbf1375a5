"""Tests of the YAML writer, whose output YAML 1.1 and 1.2 parsers read without changes."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.document_nodes import LocatedValues
from shared.catalog.document_parsers import parse_yaml
from shared.catalog.yaml_writer import iterate_yaml_parts

_TEXT = st.text(max_size=20) | st.text(alphabet="ab \n:-#'\"|>\t", max_size=12)
_NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
_VALUE = st.recursive(
    st.none() | st.booleans() | _NUMBER | _TEXT,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(_TEXT, children, max_size=3),
    max_leaves=8,
)


def read_yaml(text: str) -> Any:
    """Return the values of a YAML text."""
    values = LocatedValues(parse_yaml(text, "w.yaml"), "w.yaml")
    read_values = values.to_json_values()
    assert values.problems == []
    return read_values


@given(st.dictionaries(st.sampled_from(["team", "workspace", "kql"]), _VALUE, min_size=1))
def test_written_yaml_values_are_parsed_to_equal_values(document: dict[str, Any]) -> None:
    """Any JSON value that is written and parsed again is equal, with the same type."""
    assert json.dumps(read_yaml("".join(iterate_yaml_parts(document)))) == json.dumps(document)


@pytest.mark.parametrize(
    "text", ["no", "on", "1e3", "0o17", "0x1f", "2026-01-01", "~", "", "<<", "12:30", "1_000", "="]
)
def test_texts_that_look_like_other_types_are_quoted(text: str) -> None:
    """A text that YAML 1.1 or 1.2 would parse as another type is quoted."""
    written = "".join(iterate_yaml_parts({"value": [text]}))
    assert read_yaml(written) == yaml.safe_load(written) == {"value": [text]}


def test_multi_line_texts_are_written_as_yaml_blocks() -> None:
    """A text of several lines is written as a block, line by line."""
    assert "".join(iterate_yaml_parts({"kql": "Telemetry\n| count\n"})) == "kql: |\n  Telemetry\n  | count\n"
