"""What routes answer about records that somebody damaged in the store."""

import csv
import io
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from tests.service.local_service import Service, check_problem
from tests.service.test_amendments import AMENDMENTS, approve, create, reject
from tests.service.test_provenance import EVENTS, write

THIRD = "000000000003"
DEEP = b'{"RecordID":"000000000003","x":%b}' % (b"[" * 300 + b"]" * 300)


def damage(service: Service, target: str, scope: str, sequence: int, canonical: object) -> None:
    """Put something else in the place of a record's content."""
    with closing(sqlite3.connect(service.data_dir / "provenance.sqlite")) as file, file:
        sql = "UPDATE records SET canonical = ? WHERE sequence = ? AND chain = "
        sql += "(SELECT chain FROM chains WHERE target = ? AND scope = ?)"
        assert file.execute(sql, (canonical, sequence, target, scope)).rowcount == 1


@pytest.fixture(scope="module")
def editor(own_module_service: Service) -> httpx.Client:
    """An editor of a service whose file the tests damage."""
    return own_module_service.caller("editor@t")


@pytest.mark.parametrize("content", [b"garbage", 5, "text", b"[]", b'{"a":1},{"b":2}', DEEP])
def test_events_beside_a_damaged_one_are_still_read(
    own_module_service: Service, editor: httpx.Client, content: object
) -> None:
    """Query and export answer 200 with a stand-in and name it in a header; verify says where the chain breaks."""
    scope = f"damaged {content!r}"
    records = [write(editor, scope, EntityID=f"e{number}").json() for number in range(5)]
    damage(own_module_service, "DomainEvents", scope, 3, content)
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


def test_a_damaged_correction_is_shown_as_such_and_not_decided(
    own_module_service: Service, editor: httpx.Client
) -> None:
    """Its approval is 409, the lists and the printable report tell it; another correction goes on."""
    admin = own_module_service.caller("admin@t")
    for _ in range(2):
        create(editor, "damaged")
    damage(own_module_service, "DomainAmendments", "damaged", 1, b'{"RecordID":"000000000001","x":"<script>"}')
    told = check_problem(approve(admin, "damaged", "000000000001"), 409, "RECORD_DAMAGED")
    assert told["recordId"] == "000000000001"
    parameters = {"scopeKey": "damaged", "entityId": "B-1"}
    for address in (AMENDMENTS, f"{AMENDMENTS}/chain"):
        assert len(admin.get(address, params=parameters).json()) == 2
    page = admin.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html"})
    assert (page.status_code, "changed in the store" in page.text, "<script>" in page.text) == (200, True, False)
    damage(own_module_service, "DomainAmendments", "damaged", 1, b"\xff")
    page = admin.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["x-provenance-damaged"]) == (200, "000000000001")
    assert admin.get(AMENDMENTS, params={"scopeKey": "damaged", "status": "pending"}).status_code == 200
    check_problem(approve(admin, "damaged", "000000000001"), 409, "RECORD_DAMAGED")
    assert approve(admin, "damaged", "000000000002").status_code == 200


def forget(service: Service, scope: str, sequence: int, change: str) -> None:
    """Change filter fields of a record of corrections."""
    with closing(sqlite3.connect(service.data_dir / "provenance.sqlite")) as file, file:
        sql = f"UPDATE records SET {change} WHERE sequence = ? AND chain = "
        sql += "(SELECT chain FROM chains WHERE target = 'DomainAmendments' AND scope = ?)"
        assert file.execute(sql, (sequence, scope)).rowcount == 1


def page_of(client: httpx.Client, scope: str) -> str:
    """Return the printable page of the usual entity."""
    parameters = {"scopeKey": scope, "entityId": "B-1"}
    return client.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html"}).text


@pytest.mark.parametrize("column", ["status", "amendment_id", "entity_id", "user_id", "timestamp"])
def test_a_decision_without_its_filter_fields_decides(
    own_module_service: Service, editor: httpx.Client, column: str
) -> None:
    """It is listed, it cannot be made again, and the page tells it and that the store says something else."""
    admin, scope = own_module_service.caller("admin@t"), f"forgotten {column}"
    made = create(editor, scope).json()["RecordID"]
    decision = approve(admin, scope, made).json()
    assert "verify the chain" not in page_of(admin, scope)
    forget(own_module_service, scope, 2, f"{column} = NULL")
    reply = admin.get(AMENDMENTS, params={"scopeKey": scope})
    assert [record["RecordID"] for record in reply.json()] == ["000000000002", "000000000001"]
    told = check_problem(reject(admin, scope, made), 409, "AMENDMENT_NOT_PENDING")
    assert told["currentStatus"] == "approved"
    page = page_of(admin, scope)
    assert '<span class="status">approved</span>' in page
    assert "pending" not in page
    assert "verify the chain" in page
    assert decision["Hash"] in page


def test_the_page_shows_what_a_signature_means(own_module_service: Service, editor: httpx.Client) -> None:
    """The meaning of a decision and its Hash stand beside who and when."""
    admin = own_module_service.caller("admin@t")
    for decide, meaning in ((approve, "approval"), (reject, "rejection")):
        scope = f"signed {meaning}"
        decision = decide(admin, scope, create(editor, scope).json()["RecordID"]).json()
        page = page_of(admin, scope)
        assert f"<dt>Meaning of the signature</dt><dd>{meaning}</dd>" in page
        assert f"The decision: Hash {decision['Hash']}" in page


def test_a_page_over_its_cap_tells_decisions_beyond_it(own_module_service: Service, editor: httpx.Client) -> None:
    """Though the entity's records are cut at a thousand, none that is decided is shown as pending."""
    admin, scope = own_module_service.caller("admin@t"), "over the cap"
    made = create(editor, scope).json()["RecordID"]
    with ThreadPoolExecutor(16) as pool:
        assert all(reply.status_code == 201 for reply in pool.map(lambda _: create(editor, scope), range(1_000)))
    approve(admin, scope, made)
    page = page_of(admin, scope)
    assert "not complete" in page
    assert f'<h2>{made} <span class="status">approved</span>' in page
    assert page.count('<span class="status">pending</span>') == 999
