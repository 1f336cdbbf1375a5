"""The log where the host brings its handlers."""

import io
import logging
from collections.abc import Iterator

import pytest

from shared.observability import logs


@pytest.fixture
def host() -> Iterator[io.StringIO]:
    """A handler without a formatter at the root, as the Functions worker brings it."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root, own = logging.getLogger(), logging.getLogger(logs.ROOT)
    level = own.level
    root.addHandler(handler)
    yield written
    root.removeHandler(handler)
    own.setLevel(level)


def test_a_host_is_told_fields(host: io.StringIO) -> None:
    """A message comes first, as alerts look for it, then its fields and the request's id."""
    logs.add_fields_to_handlers("INFO")
    token = logs.request_id.set("r-1")
    logs.get_logger("door").warning("answered %d", 503, extra=logs.fields(route="/a", store="cosmos"))
    logs.request_id.reset(token)
    logs.get_logger("door").info("as it is")
    assert host.getvalue().splitlines() == [
        'answered 503 {"requestId": "r-1", "route": "/a", "store": "cosmos"}',
        "as it is",
    ]


def test_the_level_holds(host: io.StringIO) -> None:
    """What is below the level that the settings name is not told."""
    logs.add_fields_to_handlers("WARNING")
    logs.get_logger("door").info("too little")
    assert host.getvalue() == ""


def test_handlers_that_have_a_form_keep_it(host: io.StringIO) -> None:
    """A handler that somebody gave a formatter is left alone."""
    handler = next(each for each in logging.getLogger().handlers if getattr(each, "stream", None) is host)
    handler.setFormatter(logs.JsonFormatter())
    logs.add_fields_to_handlers("INFO")
    assert isinstance(handler.formatter, logs.JsonFormatter)
