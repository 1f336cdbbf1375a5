"""Tests of replies about audit records that were changed in the store."""

import csv
import io
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from tests.service.local_service import Service, check_problem
from tests.service.test_amendments import AMENDMENTS, BODY, approve_amendment, create_amendment, reject_amendment
from tests.service.test_provenance import EVENT, EVENTS, write_event

THIRD = "000000000003"
DEEP = b'{"RecordID":"000000000003","x":%b}' % (b"[" * 300 + b"]" * 300)


def damage_record(service: Service, target: str, scope: str, sequence: int, canonical: object) -> None:
    """Replace the content of a stored audit record."""
    with closing(sqlite3.connect(service.data_dir / "provenance.sqlite")) as file, file:
        sql = "UPDATE records SET canonical = ? WHERE sequence = ? AND chain = "
        sql += "(SELECT chain FROM chains WHERE target = ? AND scope = ?)"
        assert file.execute(sql, (canonical, sequence, target, scope)).rowcount == 1


@pytest.fixture(scope="module")
def editor(own_module_service: Service) -> httpx.Client:
    """Return an editor of a service whose database the tests damage."""
    return own_module_service.create_client("editor@t")


@pytest.mark.parametrize("content", [b"garbage", 5, "text", b"[]", b'{"a":1},{"b":2}', DEEP])
def test_damaged_events_are_reported_and_undamaged_events_returned(
    own_module_service: Service, editor: httpx.Client, content: object
) -> None:
    """Query and export list a damaged record in a header instead of returning it; verify reports its position."""
    scope = f"damaged {content!r}"
    records = [write_event(editor, scope, EntityID=f"e{number}").json() for number in range(5)]
    damage_record(own_module_service, "DomainEvents", scope, 3, content)
    for reply in (
        editor.get(f"{EVENTS}/query", params={"scopeKey": scope, "limit": 100}),
        editor.get(f"{EVENTS}/export", params={"scopeKey": scope}),
    ):
        assert (reply.status_code, reply.headers["x-provenance-damaged"]) == (200, THIRD)
        shown = {record["RecordID"]: record for record in reply.json()}
        assert shown[THIRD]["Damaged"] is True
        assert shown[THIRD]["Hash"] == records[2]["Hash"]
        assert [shown[record["RecordID"]] for record in records if record["RecordID"] != THIRD] == [
            *records[:2],
            *records[3:],
        ]
    as_csv = editor.get(f"{EVENTS}/export", params={"scopeKey": scope, "format": "csv"})
    assert (as_csv.status_code, as_csv.headers["x-provenance-damaged"]) == (200, THIRD)
    assert [row["RecordID"] for row in csv.DictReader(io.StringIO(as_csv.text))] == [
        record["RecordID"] for record in records
    ]
    stand_in = editor.get(f"{EVENTS}/query", params={"scopeKey": scope}).json()[2]
    for named, valid in (({}, None), ({"RecordID": THIRD}, False)):
        verdict = editor.post(f"{EVENTS}/verify", json={"ScopeKey": scope, **named}).json()
        assert (verdict["ChainValid"], verdict["BrokenAt"], verdict["Valid"]) == (False, THIRD, valid)
        assert verdict["RecomputedHash"] is None
        assert verdict["Record"] == (stand_in if named else None)
    assert "x-provenance-damaged" not in editor.get(f"{EVENTS}/query", params={"scopeKey": "never"}).headers


def test_a_damaged_amendment_cannot_be_decided(own_module_service: Service, editor: httpx.Client) -> None:
    """A damaged amendment is marked in lists and reports and cannot be approved; other amendments can be approved."""
    admin = own_module_service.create_client("admin@t")
    for _ in range(2):
        create_amendment(editor, "damaged")
    damage_record(own_module_service, "DomainAmendments", "damaged", 1, b'{"RecordID":"000000000001","x":"<script>"}')
    details = check_problem(approve_amendment(admin, "damaged", "000000000001"), 409, "RECORD_DAMAGED")
    assert details["recordId"] == "000000000001"
    parameters = {"scopeKey": "damaged", "entityId": "B-1"}
    for address in (AMENDMENTS, f"{AMENDMENTS}/chain"):
        assert len(admin.get(address, params=parameters).json()) == 2
    page = admin.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html"})
    assert (page.status_code, "changed in the store" in page.text, "<script>" in page.text) == (200, True, False)
    damage_record(own_module_service, "DomainAmendments", "damaged", 1, b"\xff")
    page = admin.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["x-provenance-damaged"]) == (200, "000000000001")
    assert admin.get(AMENDMENTS, params={"scopeKey": "damaged", "status": "pending"}).status_code == 200
    check_problem(approve_amendment(admin, "damaged", "000000000001"), 409, "RECORD_DAMAGED")
    assert approve_amendment(admin, "damaged", "000000000002").status_code == 200


@pytest.mark.parametrize(
    "content", [b"{}", b"hello", b"\xff\xfe", b'{"Hash":"forged"}', b'{"RecordID":"000000000001"}']
)
def test_a_damaged_record_is_not_returned_to_a_repeated_request(
    own_module_service: Service, editor: httpx.Client, content: bytes
) -> None:
    """A repeated request gets 409 and not the stored record, if that record was changed in the store since."""
    scope = f"repeated {content!r}"
    bodies = {EVENTS: {**EVENT, "ScopeKey": scope}, AMENDMENTS: {**BODY, "ScopeKey": scope}}
    for (address, body), target in zip(bodies.items(), ("DomainEvents", "DomainAmendments"), strict=True):
        headers = {"Idempotency-Key": f"{target} {content!r}"}
        first = editor.post(address, json=body, headers=headers)
        again = editor.post(address, json=body, headers=headers)
        assert (again.status_code, again.content) == (201, first.content)
        damage_record(own_module_service, target, scope, 1, content)
        problem = check_problem(editor.post(address, json=body, headers=headers), 409, "RECORD_DAMAGED")
        assert problem["recordId"] == first.json()["RecordID"]


def test_a_forged_decision_is_not_returned_to_a_repeated_request(
    own_module_service: Service, editor: httpx.Client
) -> None:
    """A repeated approval gets 409, if the stored decision was changed to a rejection."""
    admin = own_module_service.create_client("admin@t")
    amendment = create_amendment(editor, "forged decision").json()["RecordID"]
    admin.headers["Idempotency-Key"] = "forged decision"
    approved = approve_amendment(admin, "forged decision", amendment)
    assert approve_amendment(admin, "forged decision", amendment).content == approved.content
    forged = approved.content.split(b',"Hash"')[0].replace(b'"approved"', b'"rejected"') + b"}"
    damage_record(own_module_service, "DomainAmendments", "forged decision", 2, forged)
    check_problem(approve_amendment(admin, "forged decision", amendment), 409, "RECORD_DAMAGED")


def change_filter_fields(service: Service, scope: str, sequence: int, change: str) -> None:
    """Change fields of a stored amendment that queries use as filters and that the Hash does not cover."""
    with closing(sqlite3.connect(service.data_dir / "provenance.sqlite")) as file, file:
        sql = f"UPDATE records SET {change} WHERE sequence = ? AND chain = "
        sql += "(SELECT chain FROM chains WHERE target = 'DomainAmendments' AND scope = ?)"
        assert file.execute(sql, (sequence, scope)).rowcount == 1


def read_report(client: httpx.Client, scope: str) -> str:
    """Return the HTML report of the example entity."""
    parameters = {"scopeKey": scope, "entityId": "B-1"}
    return client.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html"}).text


@pytest.mark.parametrize("column", ["status", "amendment_id", "entity_id", "user_id", "timestamp"])
def test_a_decision_counts_even_if_its_filter_fields_were_changed(
    own_module_service: Service, editor: httpx.Client, column: str
) -> None:
    """A decision counts even if its filter fields were changed in the store; the report marks the change."""
    admin, scope = own_module_service.create_client("admin@t"), f"forgotten {column}"
    created = create_amendment(editor, scope).json()["RecordID"]
    decision = approve_amendment(admin, scope, created).json()
    assert "Verify the chain" not in read_report(admin, scope)
    change_filter_fields(own_module_service, scope, 2, f"{column} = NULL")
    reply = admin.get(AMENDMENTS, params={"scopeKey": scope})
    assert [record["RecordID"] for record in reply.json()] == ["000000000002", "000000000001"]
    details = check_problem(reject_amendment(admin, scope, created), 409, "AMENDMENT_NOT_PENDING")
    assert details["currentStatus"] == "approved"
    page = read_report(admin, scope)
    assert '<span class="status">approved</span>' in page
    assert "pending" not in page
    assert "Verify the chain" in page
    assert decision["Hash"] in page


def test_the_report_shows_the_meaning_of_a_decision(own_module_service: Service, editor: httpx.Client) -> None:
    """For each decision the report shows the meaning, the principal, the time and the Hash."""
    admin = own_module_service.create_client("admin@t")
    for decide, meaning in ((approve_amendment, "approval"), (reject_amendment, "rejection")):
        scope = f"signed {meaning}"
        decision = decide(admin, scope, create_amendment(editor, scope).json()["RecordID"]).json()
        page = read_report(admin, scope)
        assert f"<dt>Meaning of the decision</dt><dd>{meaning}</dd>" in page
        assert f"Decision: Hash {decision['Hash']}" in page


def test_a_truncated_report_shows_all_decisions(own_module_service: Service, editor: httpx.Client) -> None:
    """A report that ends after 1,000 records shows the decision about each amendment that it lists."""
    admin, scope = own_module_service.create_client("admin@t"), "over the cap"
    created = create_amendment(editor, scope).json()["RecordID"]
    with ThreadPoolExecutor(16) as pool:
        assert all(
            reply.status_code == 201 for reply in pool.map(lambda _: create_amendment(editor, scope), range(1_000))
        )
    approve_amendment(admin, scope, created)
    page = read_report(admin, scope)
    assert "report is incomplete" in page
    assert f'<h2>{created} <span class="status">approved</span>' in page
    assert page.count('<span class="status">pending</span>') == 999
