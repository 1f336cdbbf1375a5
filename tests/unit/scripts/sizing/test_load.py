"""Tests of the checks of the load that a user enters into the sizing model."""

from dataclasses import fields, replace
from typing import Any

import pytest

from scripts.sizing.__main__ import WRONG_OPTIONS, main
from scripts.sizing.load import MAX_VALUE, Load


@pytest.mark.parametrize("name", [field.name for field in fields(Load) if field.type != "bool"])
@pytest.mark.parametrize("value", [-1, MAX_VALUE + 1])
def test_load_values_out_of_range_are_named(name: str, value: int) -> None:
    """A value of the load that is out of range is rejected with the field's name."""
    changed: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=f"`{name}`"):
        replace(Load(), **changed)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--batch-seconds", "0"], "batch_seconds"),
        (["--example", "line", "--regions", "2"], "regions"),
        (["--instance-memory-mb", "1024"], "instance_memory_mb"),
    ],
)
def test_impossible_combinations_of_load_values_are_named(
    arguments: list[str], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value of the load that is impossible together with another is rejected with the field's name."""
    assert main(arguments) == WRONG_OPTIONS
    assert f"`{field}`" in capsys.readouterr().err
