"""Tests of the commands for warm queries that need no service."""

import pytest
from oi.cli.main import execute


def test_a_parameter_of_a_query_can_be_passed_only_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A parameter that has several values is wrong usage; the error names the parameter."""
    assert execute(["query", "run", "newest", "-p", "unit=a", "-p", "device=p-1", "--parameter", "device=p-2"]) == 2
    assert "The parameter 'device' has several values; pass it once." in capsys.readouterr().err
