"""Tests of the emulator's log of requests."""

import pytest

from emulators.cosmos import request_log
from emulators.cosmos.faults import FaultKind
from emulators.cosmos.request_log import RequestLog
from emulators.cosmos.wire import CosmosRequest


def _build_request(operation: str, body: bytes = b"") -> CosmosRequest:
    return CosmosRequest("POST", ("dbs", "d"), {"x-ms-version": "1"}, body, operation)


def test_log_entries_have_the_body_length_but_not_the_body() -> None:
    """A log entry has the method, path and headers of a request, and the length of its body but not the body."""
    log = RequestLog()
    log.add(_build_request("create_item", b"12345"), 429, 3200, FaultKind.STATUS)
    [entry] = log
    assert entry.request == _build_request("create_item")
    assert (entry.size, entry.status, entry.substatus, entry.fault) == (5, 429, 3200, FaultKind.STATUS)


def test_logged_requests_are_found_by_operation() -> None:
    """The log returns and counts the requests for an operation, oldest first."""
    log = RequestLog()
    for operation, status in (("query", 200), ("create_item", 201), ("query", 410)):
        log.add(_build_request(operation), status, 0, None)
    assert [entry.status for entry in log.list_by_operation("query")] == [200, 410]
    assert log.count_by_operation() == {"query": 2, "create_item": 1}


def test_a_cleared_request_log_is_empty() -> None:
    """The log is empty after it was cleared."""
    log = RequestLog()
    log.add(_build_request("query"), 200, 0, None)
    assert len(log) == 1
    log.clear()
    assert (len(log), list(log)) == (0, [])


def test_a_full_log_drops_its_oldest_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full log drops its oldest entry, so that a long run does not use up the memory."""
    monkeypatch.setattr(request_log, "_MAX_ENTRIES", 2)
    log = RequestLog()
    for status in (201, 202, 203):
        log.add(_build_request("query"), status, 0, None)
    assert [entry.status for entry in log] == [202, 203]


def test_requests_can_be_logged_while_the_log_is_read() -> None:
    """Iterating over the log returns the entries that existed when it began, even if other threads add entries."""
    log = RequestLog()
    log.add(_build_request("query"), 200, 0, None)
    for _ in log:
        log.add(_build_request("query"), 200, 0, None)
    assert len(log) == 2
