"""Tests of the table of error codes."""

import re
from pathlib import Path

import pytest

from shared.openapi.error_codes import ERROR_CODES

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "errors.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| ([^|]*[0-9]{3}[^|]*) \|", re.MULTILINE)
NOT_SENT = {"LIVE_MESSAGE_REFUSED", "BACKGROUND_JOBS_UNAVAILABLE"}
"""Codes that appear in logs only."""


def test_codes_and_statuses_match_the_documentation() -> None:
    """The table of codes and docs/reference/errors.md have the same codes, each with the same statuses."""
    listed = ROW.findall(PAGE.read_text(encoding="utf-8"))
    documented = {code: {int(each) for each in re.findall("[0-9]{3}", statuses)} for code, statuses in listed}
    known = {code: set(error.statuses) for code, error in ERROR_CODES.items()}
    assert known == {code: statuses for code, statuses in documented.items() if code not in NOT_SENT}


@pytest.mark.parametrize("code", ERROR_CODES)
def test_each_example_of_an_error_code_is_a_sentence(code: str) -> None:
    """The example of an error code is one line, begins with a capital letter or a name, and ends with a full stop."""
    assert re.fullmatch(r"[A-Z`]\S*( \S+)+\.", ERROR_CODES[code].detail)


def test_examples_of_error_codes_differ() -> None:
    """Each error code has its own example, because a copied one would describe another error."""
    details = [error.detail for error in ERROR_CODES.values()]
    assert sorted(details) == sorted(set(details))


@pytest.mark.parametrize(("suffix", "status"), [("_NOT_FOUND", 404), ("_UNAVAILABLE", 503), ("_REUSED", 422)])
def test_error_codes_with_one_ending_have_one_status(suffix: str, status: int) -> None:
    """Codes with the same ending have the same status, so that clients can rely on the ending."""
    found = {code: error.statuses for code, error in ERROR_CODES.items() if code.endswith(suffix)}
    assert found == dict.fromkeys(found, (status,)) != {}
