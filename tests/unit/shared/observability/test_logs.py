"""Tests of the service's log in a process whose host has installed its own log handlers."""

import io
import logging
from collections.abc import Iterator

import pytest

from shared.observability import logs


@pytest.fixture
def host_log() -> Iterator[io.StringIO]:
    """Return the output of a root log handler without a formatter, as in the Functions worker."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root, own = logging.getLogger(), logging.getLogger(logs.ROOT)
    level = own.level
    root.addHandler(handler)
    yield written
    root.removeHandler(handler)
    own.setLevel(level)


def test_log_fields_follow_the_message(host_log: io.StringIO) -> None:
    """A log line begins with the message, by which alerts find it; fields and request id follow."""
    logs.add_fields_to_log_handlers("INFO")
    token = logs.request_id.set("r-1")
    logs.get_logger("http").warning("answered %d", 503, extra=logs.fields(route="/a", store="cosmos"))
    logs.request_id.reset(token)
    logs.get_logger("http").info("without fields")
    assert host_log.getvalue().splitlines() == [
        'answered 503 {"requestId": "r-1", "route": "/a", "store": "cosmos"}',
        "without fields",
    ]


def test_log_records_below_the_level_are_dropped(host_log: io.StringIO) -> None:
    """Records below the configured level are not logged."""
    logs.add_fields_to_log_handlers("WARNING")
    logs.get_logger("http").info("below the level")
    assert host_log.getvalue() == ""


@pytest.mark.parametrize("unknown", ["Information", "NOTSET", "warn"])
def test_names_of_log_levels_ignore_letter_case(unknown: str) -> None:
    """The name of a log level can have lower-case letters; an unknown name, also one of Python, is rejected."""
    assert logs.parse_log_level("debug") == "DEBUG"
    with pytest.raises(ValueError, match=f"must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not '{unknown}'"):
        logs.parse_log_level(unknown)


def test_an_existing_log_formatter_is_not_replaced(host_log: io.StringIO) -> None:
    """If a handler has a formatter, the handler is not changed."""
    handler = next(each for each in logging.getLogger().handlers if getattr(each, "stream", None) is host_log)
    handler.setFormatter(logs.JsonFormatter())
    logs.add_fields_to_log_handlers("INFO")
    assert isinstance(handler.formatter, logs.JsonFormatter)
