"""Tests of the process that translates queries."""

from typing import Any

import pytest

from emulators.kusto.translator_process import _build_reply


def test_a_failure_of_the_translator_itself_is_a_client_error(caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected exception of the translator is reported as a client error, and its traceback is logged."""
    no_columns: Any = {"T": 5}
    reply, can_continue = _build_reply(
        {"text": "T | join kind=inner (T) on a", "schema": no_columns, "found": [], "types": {}, "place": [0, 0]}
    )
    assert can_continue
    assert b'"status":400' in reply
    assert b"EMB0005" in reply
    assert "Traceback" in caplog.text
