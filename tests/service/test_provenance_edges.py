"""Tests of unusual bodies, scopes, query parameters and texts on the routes of the audit log."""

import csv
import io
import json
from typing import Any

import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem
from tests.service.test_amendments import AMENDMENTS, BODY, approve_amendment, create_amendment, reject_amendment
from tests.service.test_provenance import EVENT, EVENTS, query_records, write_event

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


@pytest.mark.parametrize("scope", [5, True, ["s"], {"a": 1}])
def test_a_scope_must_be_text(service: Service, scope: object) -> None:
    """A scope in the body that is not a text is rejected with 400, and the error names the property `ScopeKey`."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    for reply in (
        editor.post(EVENTS, json={**EVENT, "ScopeKey": scope}),
        editor.post(f"{EVENTS}/verify", json={"ScopeKey": scope}),
        editor.post(AMENDMENTS, json={**BODY, "ScopeKey": scope}),
        admin.post(f"{AMENDMENTS}/000000000001/reject?scopeKey=s", json={"ScopeKey": scope}),
    ):
        assert check_failing_fields(reply) == ["ScopeKey"]


def test_a_null_scope_counts_as_missing(service: Service) -> None:
    """If the scope in the body is null, the scope in the query string applies, or else the chain of the workspace."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    reply = editor.post(EVENTS, json={**EVENT, "EntityID": "null scope", "ScopeKey": None})
    assert reply.headers["link"].endswith('target=PlatformConfig>; rel="checkpoint"')
    assert editor.post(f"{EVENTS}/verify", json={"ScopeKey": None}).json()["Target"] == "PlatformConfig"
    assert editor.post(f"{EVENTS}/verify").json()["Target"] == "PlatformConfig"
    created = create_amendment(editor, "null").json()["RecordID"]
    body = {"ScopeKey": None, "RejectionReason": None, "RejectedBy": "x"}
    rejected = admin.post(f"{AMENDMENTS}/{created}/reject?scopeKey=null", json=body).json()
    assert rejected["RejectedBy"] == "admin@t"
    assert "RejectionReason" not in rejected


@pytest.mark.parametrize(
    "scope", ["a\x00b", "\t\r\n", "..", "e\u0301", "\u202e", "\ufeff", "%2e%2e%2f", "a+b", "\u20ac" * 300]
)
def test_similar_scopes_are_separate_chains(service: Service, scope: str) -> None:
    """Scopes that differ only in control characters or Unicode normalization are separate chains."""
    editor = service.create_client("editor@t")
    record = write_event(editor, scope).json()
    assert query_records(editor, scopeKey=scope) == [record]
    assert query_records(editor, scopeKey=scope + "x") == []
    assert editor.post(f"{EVENTS}/verify", json={"ScopeKey": scope, "RecordID": record["RecordID"]}).json()["Valid"]
    name = editor.get(f"{EVENTS}/export", params={"scopeKey": scope}).headers["content-disposition"]
    assert name.removeprefix('attachment; filename="provenance-').removesuffix('.csv"').replace("_", "").isascii()
    assert not set(name) & set("/\\\r\n\x00")


def test_scopes_and_names_that_consist_of_blanks_are_stored(service: Service) -> None:
    """A scope or name of blanks is stored unchanged, because it is not empty."""
    record = write_event(
        service.create_client("editor@t"), "blank text", ActionType=" ", EntityType="\n", EntityID="\u00a0"
    ).json()
    assert (record["ActionType"], record["EntityType"], record["EntityID"]) == (" ", "\n", "\u00a0")


@pytest.mark.parametrize(
    ("number", "stored"),
    [
        ("9007199254740991", 2**53 - 1),
        ("-9007199254740991", 1 - 2**53),
        ("9007199254740993.0", 2.0**53),
        ("1E2", 100),
        ("-0.0", 0),
        ("1e-400", 0),
        ("123456789012345678e5", 123456789012345678e5),
    ],
)
def test_the_largest_and_smallest_doubles_are_stored(service: Service, number: str, stored: float) -> None:
    """The largest and smallest doubles are stored and returned unchanged, and the chain stays valid."""
    editor = service.create_client("editor@t")
    body = json.dumps({**EVENT, "ScopeKey": "numbers", "AfterState": {"n": 0}}).replace('"n": 0', f'"n": {number}')
    reply = editor.post(EVENTS, content=body)
    assert reply.status_code == 201, reply.text
    assert reply.json()["AfterState"]["n"] == stored
    assert editor.post(f"{EVENTS}/verify", json={"ScopeKey": "numbers"}).json()["ChainValid"] is True


@pytest.mark.parametrize("text", ["9007199254740992", "-9007199254740992", "1e400"])
def test_numbers_outside_the_range_of_doubles_are_rejected(service: Service, text: str) -> None:
    """A body with a number outside the range of doubles gets 400, even in an ignored property."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    event = json.dumps({**EVENT, "ScopeKey": "beyond", "BeforeState": {"a": [0, {"n": "@"}]}}).replace('"@"', text)
    assert editor.post(EVENTS, content=event).status_code == 400
    correction = json.dumps({**BODY, "ScopeKey": "beyond", "OriginalRecord": {"n": "@"}}).replace('"@"', text)
    assert editor.post(AMENDMENTS, content=correction).status_code == 400
    for path, body in ((EVENTS, EVENT), (AMENDMENTS, BODY)):
        for member in ("Unlisted", "RecordID"):
            for value in ("@", [{"n": "@"}]):
                dropped = json.dumps({**body, "ScopeKey": "beyond", member: value}).replace('"@"', text)
                reply = editor.post(path, content=dropped)
                assert (reply.status_code, path) == (400, path)
                assert "1e400" in text or check_failing_fields(reply)[0].startswith(member)
    for path in (f"{EVENTS}/verify", f"{AMENDMENTS}/000000000001/approve", f"{AMENDMENTS}/000000000001/reject"):
        reply = admin.post(path, params={"scopeKey": "beyond"}, content=f'{{"Unlisted": {text}}}')
        assert (reply.status_code, path) == (400, path)
    assert query_records(editor, scopeKey="beyond") == []


@pytest.mark.parametrize(
    "content", ['\ufeff{"a":1}'.encode(), '{"a":1}'.encode("utf-16"), b'{"a":1}{', b"{'a':1}", b"\xff"]
)
def test_an_invalid_json_body_gets_400(service: Service, content: bytes) -> None:
    """Every route with a body rejects invalid JSON."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    for client, path in (
        (editor, EVENTS),
        (editor, f"{EVENTS}/verify"),
        (editor, AMENDMENTS),
        (admin, f"{AMENDMENTS}/000000000001/reject?scopeKey=s"),
    ):
        check_problem(client.post(path, content=content), 400, "BODY_NOT_JSON")


def test_export_lists_ignored_parameters(service: Service) -> None:
    """An export ignores offset, sequences, invalid limits and dates, and empty filters; a header lists them."""
    editor = service.create_client("editor@t")
    for number in range(3):
        write_event(editor, "export edges", EntityID=f"e{number}")
    parameters = {"scopeKey": "export edges", "offset": "2", "fromSequence": "x", "toSequence": "1"}
    reply = editor.get(f"{EVENTS}/export", params=parameters)
    assert (len(reply.json()), reply.headers["x-provenance-ignored"]) == (3, "offset, fromSequence, toSequence")
    bad = {"scopeKey": "export edges", "limit": "0", "startDate": "soon", "endDate": "", "userId": ""}
    reply = editor.get(f"{EVENTS}/export", params=bad)
    assert (len(reply.json()), reply.headers["x-provenance-ignored"]) == (3, "startDate, endDate, userId, limit")
    for wrong in ("CSV", "", "xml"):
        assert check_failing_fields(editor.get(f"{EVENTS}/export", params={"format": wrong})) == ["format"]


def test_formulas_in_csv_cells_are_escaped(service: Service) -> None:
    """A CSV cell that begins with one of the six formula characters is prefixed with an apostrophe.

    Other cells are unchanged.
    """
    editor = service.create_client("editor@t")
    cells = ["=cmd()", "+1", "-1", "@a", "\ta", "\ra", 'a"b\r\nc', "a=b", " =a"]
    for cell in cells:
        write_event(editor, "cells", EntityID=cell)
    text = editor.get(f"{EVENTS}/export", params={"scopeKey": "cells", "format": "csv"}).text
    found = [row["EntityID"] for row in csv.DictReader(io.StringIO(text, newline=""))]
    assert found == [f"'{cell}" if cell[0] in "=+-@\t\r" else cell for cell in cells]


def test_a_time_offset_with_an_unencoded_plus_sign_is_accepted(service: Service) -> None:
    """A time offset is accepted even if URL decoding has turned its plus sign into a blank."""
    editor = service.create_client("editor@t")
    write_event(editor, "plus")
    for text in ("2020-01-01T00:00:00+02:00", "2020-01-01T00:00:00%2B02:00", "2020-01-01T00:00:00.5+0200"):
        reply = editor.get(f"{EVENTS}/query?scopeKey=plus&startDate={text}")
        assert (len(reply.json()), "x-provenance-ignored" in reply.headers) == (1, False)


@pytest.mark.parametrize("date", ["2020-01-01t00:00:00z", "2020-01-01T00:00:00.5z", "2020-01-01t00:00:00%2B02:00"])
def test_dates_can_contain_lower_case_t_and_z(service: Service, date: str) -> None:
    """Dates may contain t and z in lower case, as RFC 3339 allows."""
    editor = service.create_client("editor@t")
    write_event(editor, "small letters")
    for end, found in (("2100-01-01t00:00:00z", True), (date, False)):
        reply = editor.get(f"{EVENTS}/query?scopeKey=small letters&startDate={date}&endDate={end}")
        assert (bool(reply.json()), "x-provenance-ignored" in reply.headers) == (found, False)


def test_the_amendment_report_escapes_markup(service: Service) -> None:
    """Markup in scope, entity, field names and values is escaped in the report."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    members: dict[str, Any] = {
        "EntityID": HOSTILE,
        "ReasonText": HOSTILE,
        "ChangedFields": [HOSTILE, "absent"],
        "OriginalRecord": {HOSTILE: {HOSTILE: [HOSTILE]}},
        "AmendedRecord": {HOSTILE: None},
    }
    created = create_amendment(editor, HOSTILE, **members).json()["RecordID"]
    assert reject_amendment(admin, HOSTILE, created, RejectionReason=HOSTILE).status_code == 200
    where = {"scopeKey": HOSTILE, "entityId": HOSTILE}
    page = admin.get(f"{AMENDMENTS}/chain", params=where, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert not [tag for tag in ("<script", "<img") if tag in page.text]
    assert page.text.count("&lt;script&gt;") >= 6
    assert "script-src" not in page.headers["content-security-policy"]


def test_an_invalid_record_id_is_not_found(service: Service) -> None:
    """A request with a path, other digits or control characters in place of a RecordID gets 404."""
    admin = service.create_client("admin@t")
    for amendment in (
        "..%2F..%2Fx",
        "%00",
        "%D9%A0" * 12,
        "00000000000",
        "0000000000001",
        "-00000000001",
        "000000000000",
    ):
        check_problem(approve_amendment(admin, "s", amendment), 404, "AMENDMENT_NOT_FOUND")
