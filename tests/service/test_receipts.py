"""Tests of receipts over HTTP."""

import base64
import html
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import cbor2
import httpx
import pytest
import scitt_cose

from tests.node_suites import running
from tests.receipts import convert_key, select_key, verify_growth, verify_inclusion
from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_failing_fields, check_problem
from tests.service.test_amendments import approve_amendment, create_amendment
from tests.service.test_provenance import EVENTS, write_event

RECEIPT, KEYS = "/oi-api/provenance/receipt", "/.well-known/oi-checkpoint-key"
SCOPE = "receipts/ü 1"


def write_events(editor: httpx.Client, scope: str, count: int) -> list[dict[str, Any]]:
    """Append events and return the records."""
    return [write_event(editor, scope, EntityID=str(number)).json() for number in range(count)]


def create_checkpoint(editor: httpx.Client, scope: str) -> None:
    """Start an audit bundle, because the service then creates a checkpoint of the bundle's chains without delay."""
    body = {"scopes": [{"target": "DomainEvents", "scopeKey": scope}]}
    reply = editor.post("/oi-api/provenance/bundles", json=body, headers={"Prefer": "wait=30"})
    assert reply.status_code == 200, reply.text


@pytest.fixture(scope="module")
def service_with_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service with a chain of 6 records, and with checkpoints that cover 3 and 5 records."""
    # The background job would sign a checkpoint of 6 records within a minute.
    environment = {"CHECKPOINT_SCHEDULE": "0 0 0 1 1 *"}
    started = Service(tmp_path_factory.mktemp("receipts") / "data", WORKSPACE, environment).start()
    editor = started.create_client("editor@t")
    for count in (3, 2):
        write_events(editor, SCOPE, count)
        create_checkpoint(editor, SCOPE)
    write_events(editor, SCOPE, 1)
    yield started
    started.stop()


def request_receipt(service_with_checkpoints: Service, **parameters: Any) -> httpx.Response:
    """Request a receipt with these query parameters and the chain of the test module, and return the reply."""
    return service_with_checkpoints.create_client("viewer@t").get(RECEIPT, params={"scopeKey": SCOPE, **parameters})


def read_hashes(service_with_checkpoints: Service) -> list[str]:
    """Return the Hash of each record, oldest first."""
    exported = (
        service_with_checkpoints.create_client("editor@t").get(f"{EVENTS}/export", params={"scopeKey": SCOPE}).json()
    )
    return [record["Hash"] for record in exported]


def test_scitt_cose_verifies_a_receipt(service_with_checkpoints: Service) -> None:
    """The package scitt-cose accepts a receipt with a key of the published set."""
    key_set = service_with_checkpoints.create_anonymous_client().get(KEYS, params={"format": "cose"}).content
    for sequence, size in ((1, 3), (5, 5), (2, None)):
        named = {} if size is None else {"size": size}
        reply = request_receipt(service_with_checkpoints, recordId=f"{sequence:012d}", **named)
        assert reply.status_code == 200, reply.text
        found = verify_inclusion(reply.content, read_hashes(service_with_checkpoints)[sequence - 1], key_set)
        assert (found.ok, found.tree_size, found.leaf_index) == (True, size or 5, sequence - 1)
        assert found.subject == "oi-provenance/plant-t/DomainEvents/receipts%2F%C3%BC%201"
        assert reply.headers["content-type"] == 'application/cose; cose-type="cose-sign1"'
        name = f"DomainEvents-{sequence:012d}.receipt.cbor"
        assert reply.headers["content-disposition"] == f'attachment; filename="{name}"'
        fixed = "private, max-age=31536000, immutable"
        assert reply.headers["cache-control"] == (fixed if size else "private, no-cache")
    other = request_receipt(service_with_checkpoints, recordId="000000000002").content
    assert not verify_inclusion(other, read_hashes(service_with_checkpoints)[0], key_set).ok


def test_scitt_cose_verifies_a_consistency_receipt(service_with_checkpoints: Service) -> None:
    """A consistency receipt proves to scitt-cose that the newest checkpoint extends an earlier checkpoint."""
    reply = request_receipt(service_with_checkpoints, **{"from": 3})
    key_set = service_with_checkpoints.create_anonymous_client().get(KEYS, params={"format": "cose"}).content
    assert verify_growth(reply.content, read_hashes(service_with_checkpoints), key_set) == (3, 5)
    assert reply.headers["content-disposition"] == 'attachment; filename="DomainEvents-3-5.receipt.cbor"'
    assert request_receipt(service_with_checkpoints, **{"from": 3, "size": 5}).content == reply.content


def test_a_request_with_the_etag_of_a_receipt_gets_304(service_with_checkpoints: Service) -> None:
    """A request with the ETag of the receipt gets 304 without a body."""
    first = request_receipt(service_with_checkpoints, recordId="000000000001")
    known = {"If-None-Match": f'"other", {first.headers["etag"]}'}
    again = service_with_checkpoints.create_client("viewer@t").get(
        RECEIPT, params={"scopeKey": SCOPE, "recordId": "000000000001"}, headers=known
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


def test_both_key_sets_contain_the_signing_key(service_with_checkpoints: Service) -> None:
    """Both published key sets contain the key that signs checkpoints.

    Without `format` the reply is this key as a line of text.
    """
    anonymous = service_with_checkpoints.create_anonymous_client()
    line, cose, jwks = (anonymous.get(KEYS, params=each) for each in ({}, {"format": "cose"}, {"format": "jwks"}))
    key_id = line.text.split("+")[1]
    assert line.headers["content-type"] == "text/plain; charset=utf-8"
    assert (cose.headers["content-type"], jwks.headers["content-type"]) == (
        "application/cose-key-set",
        "application/json",
    )
    [key], [jwk] = cbor2.loads(cose.content), jwks.json()["keys"]
    assert (key[2].hex(), jwk["kid"], jwk["crv"]) == (key_id, key_id, "P-256")
    receipt = request_receipt(service_with_checkpoints, recordId="000000000001").content
    assert convert_key(key) == convert_key(jwk) == select_key(receipt, cose.content)
    assert check_failing_fields(anonymous.get(KEYS, params={"format": "pem"})) == ["format"]
    assert check_failing_fields(anonymous.get(KEYS, params={"formats": "cose"})) == ["formats"]


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("", ["recordId"]),
        ("recordId=000000000001&from=1", ["recordId"]),
        ("recordId=1", ["recordId"]),
        ("recordId=00000000000x", ["recordId"]),
        ("recordId=&from=1", ["recordId"]),
        ("recordId=000000000004&size=3", ["size"]),
        ("recordId=000000000004&size=x", ["size"]),
        ("recordId=000000000004&size=0", ["size"]),
        ("recordId=000000000001&sequence=1", ["sequence"]),
        ("from=0", ["from"]),
        ("from=x", ["from"]),
        ("from=5", ["from"]),
        ("from=9", ["from"]),
        ("from=3&size=3", ["from"]),
        ("from=3&size=-3", ["from"]),
    ],
)
def test_the_error_about_receipt_parameters_names_the_parameter(
    service_with_checkpoints: Service, query: str, fields: list[str]
) -> None:
    """A missing, malformed, contradictory or unknown parameter is rejected with the parameter's name."""
    reply = service_with_checkpoints.create_client("viewer@t").get(f"{RECEIPT}?scopeKey={SCOPE}&{query}")
    assert check_failing_fields(reply) == fields


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"recordId": "000000000007"}, "RECORD_NOT_FOUND"),
        ({"recordId": "000000000000"}, "RECORD_NOT_FOUND"),
        ({"recordId": "000000000000", "size": "3"}, "RECORD_NOT_FOUND"),
        ({"recordId": "000000000001", "size": "4"}, "CHECKPOINT_NOT_FOUND"),
        ({"recordId": "000000000001", "scopeKey": "never"}, "RECORD_NOT_FOUND"),
        ({"from": "2"}, "CHECKPOINT_NOT_FOUND"),
        ({"from": "3", "size": "4"}, "CHECKPOINT_NOT_FOUND"),
        ({"from": "1", "scopeKey": "never"}, "CHECKPOINT_NOT_FOUND"),
    ],
)
def test_unknown_records_and_chain_sizes_get_404(
    service_with_checkpoints: Service, parameters: dict[str, str], code: str
) -> None:
    """A record that is not in the chain, and a chain size without a checkpoint, get 404."""
    check_problem(request_receipt(service_with_checkpoints, **parameters), 404, code)


def test_receipts_require_a_valid_target_and_the_right_to_read(service_with_checkpoints: Service) -> None:
    """Requests for receipts require a valid pair of target and scope and the right to read the audit log."""
    viewer = service_with_checkpoints.create_client("viewer@t")
    wanted = {"recordId": "000000000001"}
    for parameters, code in (
        ({"target": "Other"}, "TARGET_UNKNOWN"),
        ({"target": "DomainEvents"}, "TARGET_SCOPE_MISMATCH"),
        ({"scopeKey": ""}, "SCOPE_KEY_REQUIRED"),
    ):
        check_problem(viewer.get(RECEIPT, params={**wanted, **parameters}), 400, code)
    check_problem(
        service_with_checkpoints.create_anonymous_client().get(RECEIPT, params=wanted), 401, "UNAUTHENTICATED"
    )


def test_a_new_record_has_no_receipt_yet(service_with_checkpoints: Service) -> None:
    """Until a checkpoint covers a record, its receipt gets 404 with the number of seconds to wait."""
    editor = service_with_checkpoints.create_client("editor@t")
    write_events(editor, "new receipt", 1)
    reply = editor.get(RECEIPT, params={"scopeKey": "new receipt", "recordId": "000000000001"})
    if reply.status_code != 200:  # the background job may have signed meanwhile
        check_problem(reply, 404, "RECEIPT_NOT_READY")
        assert reply.headers["retry-after"] == "15"


def test_a_broken_chain_gets_no_receipts(service_with_checkpoints: Service) -> None:
    """A changed record has no receipt; once a verification has found the change, the whole chain has none."""
    editor = service_with_checkpoints.create_client("editor@t")
    records = write_events(editor, "broken receipts", 4)
    create_checkpoint(editor, "broken receipts")
    with closing(sqlite3.connect(service_with_checkpoints.data_dir / "provenance.sqlite")) as file, file:
        edit = "UPDATE records SET canonical = replace(canonical, 'Released', 'Rejected') WHERE hash = ?"
        file.execute(edit, (records[1]["Hash"],))
    wanted = {"scopeKey": "broken receipts"}
    check_problem(editor.get(RECEIPT, params={**wanted, "recordId": "000000000002"}), 409, "CHAIN_BROKEN")
    assert editor.get(RECEIPT, params={**wanted, "recordId": "000000000001"}).status_code == 200
    assert not editor.post(f"{EVENTS}/verify", json={"ScopeKey": "broken receipts"}).json()["ChainValid"]
    for parameters in ({"recordId": "000000000001"}, {"recordId": "000000000004", "size": "4"}):
        check_problem(editor.get(RECEIPT, params={**wanted, **parameters}), 409, "CHAIN_BROKEN")


def test_the_html_page_of_an_entity_contains_receipts(service_with_checkpoints: Service) -> None:
    """The page of an entity has receipts of its amendments and decisions if the caller may read the audit log."""
    editor, admin, scope = (
        service_with_checkpoints.create_client("editor@t"),
        service_with_checkpoints.create_client("admin@t"),
        "receipts of a page",
    )
    first = create_amendment(editor, scope).json()["RecordID"]
    assert approve_amendment(admin, scope, first).status_code == 200
    chain = {"target": "DomainAmendments", "scopeKey": scope}
    bundle = {"scopes": [chain]}
    assert editor.post("/oi-api/provenance/bundles", json=bundle, headers={"Prefer": "wait=30"}).status_code == 200
    create_amendment(editor, scope)
    address, wanted = "/oi-api/provenance/amendments/chain", {"scopeKey": scope, "entityId": "B-1"}
    page = admin.get(address, params=wanted, headers={"Accept": "text/html"}).text
    found = re.findall(r'download="([^"]+)" href="data:application/cose;base64,([^"]+)"', page)
    names = [f"DomainAmendments-{number:012d}.receipt.cbor" for number in (1, 2)]
    # The background job may have covered the third record meanwhile.
    assert [name for name, _ in found][:2] == names
    key_set = service_with_checkpoints.create_anonymous_client().get(KEYS, params={"format": "cose"}).content
    hashes = [record["Hash"] for record in admin.get(address, params=wanted).json()]
    for number, (_, content) in enumerate(found):
        assert verify_inclusion(base64.b64decode(content), hashes[number], key_set).ok
    query = html.escape(f"/oi-api/provenance/receipt?{urlencode({**chain, 'recordId': first})}")
    assert query in page
    limited = {"scopes": "Workspace.Amendment.Read"}
    token = (
        service_with_checkpoints.create_anonymous_client(bearer=service_with_checkpoints.read_api_key("admin@t"))
        .get("/workspace/api/keys/jwt", params=limited)
        .json()["Token"]
    )
    page = (
        service_with_checkpoints.create_anonymous_client(bearer=token)
        .get(address, params=wanted, headers={"Accept": "text/html"})
        .text
    )
    assert first in page
    assert "receipt.cbor" not in page


@pytest.mark.skipif(bool(running.find_missing_requirement()), reason=running.find_missing_requirement())
def test_receipts_are_verified_in_node_js(service_with_checkpoints: Service, tmp_path: Path) -> None:
    """A CBOR package and WebCrypto in Node.js accept both kinds of receipts, and reject a receipt of another record."""
    hashes = read_hashes(service_with_checkpoints)
    inclusion = request_receipt(service_with_checkpoints, recordId="000000000002").content.hex()
    growth = request_receipt(service_with_checkpoints, **{"from": 3}).content.hex()
    receipts = [
        {"receipt": inclusion, "hash": hashes[1]},
        {"receipt": growth, "olderRoot": scitt_cose.merkle_root(hashes[:3])},
        {"receipt": inclusion, "hash": hashes[0]},
        {"receipt": growth, "olderRoot": scitt_cose.merkle_root(hashes[:2])},
    ]
    keys = service_with_checkpoints.create_anonymous_client().get(KEYS, params={"format": "jwks"}).json()["keys"]
    file = tmp_path / "receipts.json"
    file.write_text(json.dumps({"keys": keys, "receipts": receipts}))
    done = running.run_script("receipts.mjs", str(file))
    assert done.returncode == 0, done.stderr
    first, second, *wrong = json.loads(done.stdout)
    root, subject = scitt_cose.merkle_root(hashes[:5]), "oi-provenance/plant-t/DomainEvents/receipts%2F%C3%BC%201"
    assert first == {"root": root, "subject": subject, "sizes": [5]}
    assert second == {"root": root, "subject": subject, "sizes": [3, 5]}
    assert [each["error"] for each in wrong] == ["the signature is wrong", "the older root differs"]
