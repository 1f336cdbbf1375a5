"""Tests of the number of random examples of each rule."""

import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.random_examples import scale_examples

TESTS = Path(__file__).parent


@pytest.mark.parametrize(("profile", "examples"), [("tests", 8), ("soak", 200)])
def test_make_soak_takes_25_times_as_many_examples(profile: str, examples: int) -> None:
    """For a rule with its own number of examples, make soak takes 25 times as many as a run of all tests."""
    current = settings.get_current_profile_name()
    settings.load_profile(profile)
    try:
        assert scale_examples(8) == examples
    finally:
        settings.load_profile(current)


def test_no_number_of_examples_is_fixed() -> None:
    """Each test with its own number of examples scales it, because a fixed number would also hold in make soak."""
    fixed = re.compile(r"max_examples\s*=(?!scale_examples\()")
    assert [path for path in TESTS.rglob("test_*.py") if fixed.search(path.read_text(encoding="utf-8"))] == []
