"""Tests of the documents of published tables over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem

BASE = "/oi-api/data-stores/mes/databases/orders/tables"
OWN = {"_rid", "_self", "_etag", "_attachments", "_ts"}


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """Return a client that may read and write documents."""
    return service.create_client("admin@t")


def create_document(client: httpx.Client, table: str = "workorders", **document: Any) -> httpx.Response:
    """Create a document in a table and return the reply."""
    return client.post(f"{BASE}/{table}", json=document)


def test_a_document_is_created_replaced_and_deleted(editor: httpx.Client) -> None:
    """A document can be created, read by its Location, replaced, read conditionally and deleted."""
    created = create_document(editor, id="life", line="l1", n=1)
    assert created.status_code == 201, created.text
    assert created.json() == {"id": "life", "line": "l1", "n": 1}
    assert created.headers["location"] == f"{BASE}/workorders/life?partitionKey=l1"
    etag = created.headers["etag"]
    read = editor.get(created.headers["location"])
    assert (read.status_code, read.json(), read.headers["etag"]) == (200, created.json(), etag)
    known = editor.get(created.headers["location"], headers={"If-None-Match": f'"x", W/{etag}'})
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", etag)
    check_problem(create_document(editor, id="life", line="l1"), 409, "DOCUMENT_EXISTS")
    assert create_document(editor, id="life", line="l2").status_code == 201
    put = editor.put(f"{BASE}/workorders/life", json={"line": "l1", "n": 2})
    assert (put.status_code, put.json()) == (200, {"id": "life", "line": "l1", "n": 2})
    assert put.headers["etag"] not in ("", etag)
    assert editor.get(created.headers["location"]).json()["n"] == 2
    gone = editor.delete(created.headers["location"])
    assert (gone.status_code, gone.content) == (204, b"")
    for call in (editor.get, editor.delete):
        check_problem(call(created.headers["location"]), 404, "DOCUMENT_NOT_FOUND")
    check_problem(editor.put(f"{BASE}/workorders/life", json={"line": "l1"}), 404, "DOCUMENT_NOT_FOUND")
    assert editor.get(f"{BASE}/workorders/life", params={"partitionKey": "l2"}).status_code == 200


def test_a_document_without_an_id_gets_a_generated_id(editor: httpx.Client) -> None:
    """A document without an id gets a generated id; in a table partitioned by `id` it needs no partition key."""
    created = create_document(editor, "notes", text="x")
    assert created.status_code == 201
    document_id = created.json()["id"]
    assert created.headers["location"] == f"{BASE}/notes/{document_id}"
    assert editor.get(created.headers["location"]).json() == {"id": document_id, "text": "x"}
    check_problem(editor.get(created.headers["location"], params={"partitionKey": "other"}), 404, "DOCUMENT_NOT_FOUND")


def test_cosmos_system_properties_of_a_document_are_ignored(editor: httpx.Client) -> None:
    """Cosmos DB's system properties in a document are accepted and ignored."""
    sent = {"id": "bare", "_own": 1, **dict.fromkeys(OWN, "x")}
    assert create_document(editor, "notes", **sent).json() == {"id": "bare", "_own": 1}
    assert editor.get(f"{BASE}/notes/bare").json() == {"id": "bare", "_own": 1}


@pytest.mark.parametrize("value", ["a b/ü", "", "null", 7, -0.5, True, False, None])
def test_partition_keys_of_each_type_are_distinct(editor: httpx.Client, value: Any) -> None:
    """A text, a number, a boolean and null are different partition keys.

    The header Location contains the partition key.
    """
    created = create_document(editor, "nested", id="typed", site={"line": value})
    assert created.status_code == 201, created.text
    assert editor.get(created.headers["location"]).json()["site"] == {"line": value}
    params = {"partitionKey": json.dumps(value), "partitionKeyType": "json"}
    assert editor.get(f"{BASE}/nested/typed", params=params).status_code == 200
    listed = editor.get(f"{BASE}/nested", params=params).json()
    assert listed == {"documents": [created.json()], "count": 1, "continuationToken": None}
    replaced = editor.put(f"{BASE}/nested/typed", json={"site": {"line": value}, "n": 2})
    assert replaced.json()["n"] == 2
    assert editor.delete(f"{BASE}/nested/typed", params=params).status_code == 204


def test_equal_numbers_are_the_same_partition_key(editor: httpx.Client) -> None:
    """The numbers 1 and 1.0 are the same partition key; the text "1" is a different key."""
    assert create_document(editor, "nested", id="one", site={"line": 1}).status_code == 201
    for text, status in (("1.0", 200), ("1", 200), ('"1"', 404), ("true", 404)):
        params = {"partitionKey": text, "partitionKeyType": "json"}
        assert editor.get(f"{BASE}/nested/one", params=params).status_code == status


@pytest.mark.parametrize(
    "document_id",
    [
        "ü ñ 漢字 😀",
        "a+b%20c&d=e",
        "x" * 1023,
        "…",
        "a:b;c,d",
        '"quoted"',
        "%2e",
        "line%2F1",
        "line%252f1",
        "50%",
        "%E4",
    ],
)
def test_documents_with_valid_ids_are_stored(editor: httpx.Client, document_id: str) -> None:
    """A document with any valid id can be stored, and read and replaced by its Location."""
    created = create_document(editor, "notes", id=document_id)
    assert created.status_code == 201, created.text
    assert editor.get(created.headers["location"]).json() == {"id": document_id}
    assert editor.put(created.headers["location"], json={"id": document_id, "n": 1}).status_code == 200
    assert editor.delete(created.headers["location"]).status_code == 204


@pytest.mark.parametrize(
    "document_id",
    [
        "a/b",
        "a\\b",
        "a#b",
        "a?b",
        "a\tb",
        "a\nb",
        "a\x00b",
        "x" * 1024,
        "ü" * 512,
        "",
        " ",
        "a ",
        ".",
        "..",
        5,
        None,
        [],
    ],
)
def test_documents_with_invalid_ids_are_rejected(editor: httpx.Client, document_id: Any) -> None:
    """An invalid id in the body or the URL is rejected with 400 and the field's name."""
    assert check_failing_fields(create_document(editor, "notes", id=document_id)) == ["id"]
    if isinstance(document_id, str) and document_id.strip("."):
        path = httpx.URL(f"{BASE}/notes/").raw_path.decode() + "".join(f"%{byte:02X}" for byte in document_id.encode())
        for method in ("GET", "DELETE", "PUT"):
            assert check_failing_fields(editor.request(method, path, json={})) == ["documentId"]


@pytest.mark.parametrize(
    ("query", "body", "fields"),
    [
        ("", {"id": "other", "line": "l1"}, ["id"]),
        ("?partitionKey=l1", {"id": "put", "line": "l2"}, ["line"]),
        ("?partitionKey=l1", {"id": "put"}, ["line"]),
        ("?partitionKey=1&partitionKeyType=json", {"line": "1"}, ["line"]),
        ("", {"line": {"a": 1}}, ["line"]),
        ("", {"line": ["l1"]}, ["line"]),
        ("", {"line": "x" * 2049}, ["line"]),
        ("", {"line": "l1", "n": 2**53}, ["n"]),
        ("", {"line": "l1", "deep": [{"n": -(2**60)}]}, ["deep"]),
        ("", {"id": 5, "line": "l1", "n": 2**53, "m": [2**60]}, ["id", "n", "m"]),
        ("?partitionKey=l1&partitionKey=l1", {"line": "l1"}, ["partitionKey"]),
        ("?partitionKey=l1&partitionKeyType=text", {"line": "l1"}, ["partitionKeyType"]),
    ],
)
def test_id_and_partition_key_must_equal_those_of_the_url(
    editor: httpx.Client, query: str, body: dict[str, Any], fields: list[str]
) -> None:
    """The id and partition key in a body must equal those of the URL and have a valid type."""
    create_document(editor, id="put", line="l1")
    assert check_failing_fields(editor.put(f"{BASE}/workorders/put{query}", json=body)) == fields


@pytest.mark.parametrize("text", ["[1]", "{}", "x", "", "NaN", "1e999", '"a', "9" * 400, "9" * 5000])
def test_a_json_partition_key_must_be_a_scalar(editor: httpx.Client, text: str) -> None:
    """With partitionKeyType=json, a partition key that is not a scalar gets 400."""
    params = {"partitionKey": text, "partitionKeyType": "json"}
    for path in ("workorders", "workorders/x"):
        assert check_failing_fields(editor.get(f"{BASE}/{path}", params=params)) == ["partitionKey"]


@pytest.mark.parametrize("content", [b"[]", b"[{}]", b"5", b"null", b'"x"'])
def test_a_document_must_be_a_json_object(editor: httpx.Client, content: bytes) -> None:
    """JSON values other than objects are rejected."""
    assert check_failing_fields(editor.post(f"{BASE}/notes", content=content)) == ["body"]
    assert check_failing_fields(editor.put(f"{BASE}/notes/x", content=content)) == ["body"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"a":1,"a":2}', b"\xff"])
def test_documents_with_invalid_json_are_rejected(editor: httpx.Client, content: bytes) -> None:
    """A body that is not strict JSON is rejected."""
    check_problem(editor.post(f"{BASE}/notes", content=content), 400, "BODY_NOT_JSON")


def test_the_size_of_a_document_is_limited(editor: httpx.Client) -> None:
    """A document of 2,000,000 bytes is stored; a larger document is rejected with 413."""
    frame = len(b'{"id":"big","line":"l","pad":""}')
    fits = {"id": "big", "line": "l", "pad": "x" * (2_000_000 - frame)}
    assert create_document(editor, **fits).status_code == 201
    assert editor.get(f"{BASE}/workorders/big", params={"partitionKey": "l"}).json() == fits
    check_problem(create_document(editor, **fits | {"pad": fits["pad"] + "x"}), 413, "DOCUMENT_TOO_LARGE")
    check_problem(
        editor.put(f"{BASE}/workorders/big", json=fits | {"pad": fits["pad"] + "x"}), 413, "DOCUMENT_TOO_LARGE"
    )
    check_problem(create_document(editor, pad="x" * 2 * 1024 * 1024), 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_document_requests_require_a_partition_key(editor: httpx.Client, method: str) -> None:
    """A request for a document needs a partition key, unless the table is partitioned by id or a PUT body has it."""
    reply = editor.request(method, f"{BASE}/workorders/x", json={"n": 1})
    assert check_failing_fields(reply, 400, "PARTITION_KEY_REQUIRED") == ["partitionKey"]
    check_problem(editor.request(method, f"{BASE}/notes/nothing", json={}), 404, "DOCUMENT_NOT_FOUND")


def test_a_new_document_needs_a_partition_key(editor: httpx.Client) -> None:
    """A new document without a partition key is rejected."""
    check_problem(create_document(editor, id="keyless"), 400, "PARTITION_KEY_REQUIRED")
    check_problem(create_document(editor, "nested", id="keyless", site="l1"), 400, "PARTITION_KEY_REQUIRED")


def test_conditional_document_writes_require_the_current_etag(editor: httpx.Client) -> None:
    """A write with an old or weak ETag gets 412, and a write with a malformed ETag gets 400."""
    path = f"{BASE}/notes/conditional"
    stale = create_document(editor, "notes", id="conditional", n=0).headers["etag"]
    etag = editor.put(path, json={"n": 1}).headers["etag"]
    for refused in (stale, f"W/{etag}", f"{stale}, {stale}", '""'):
        for method in ("PUT", "DELETE", "GET"):
            reply = editor.request(method, path, json={"n": 9}, headers={"If-Match": refused})
            check_problem(reply, 412, "PRECONDITION_FAILED")
    for malformed in ("x", '"a', etag[1:-1], f"{etag} {etag}", "", '"a" "b"', f"{etag},x", 'w/"a"'):
        for method in ("PUT", "DELETE", "GET"):
            reply = editor.request(method, path, json={"n": 9}, headers={"If-Match": malformed})
            assert check_failing_fields(reply) == ["If-Match"], malformed
    check_problem(editor.put(path, json={"n": 9}, headers={"If-None-Match": "*"}), 412, "PRECONDITION_FAILED")
    check_problem(editor.delete(path, headers={"If-None-Match": etag}), 412, "PRECONDITION_FAILED")
    assert editor.get(path).json()["n"] == 1
    etag = editor.put(path, json={"n": 2}, headers={"If-Match": f'"x", {etag}'}).headers["etag"]
    assert editor.put(path, json={"n": 3}, headers={"If-Match": "*"}).status_code == 200
    check_problem(editor.delete(path, headers={"If-Match": etag}), 412, "PRECONDITION_FAILED")
    etag = editor.get(path).headers["etag"]
    assert editor.delete(path, headers={"If-Match": etag}).status_code == 204
    check_problem(editor.delete(path, headers={"If-Match": etag}), 404, "DOCUMENT_NOT_FOUND")


def test_concurrent_replacements_of_a_document_are_not_lost(service: Service, editor: httpx.Client) -> None:
    """If 16 writers replace a document repeatedly with If-Match, each successful write builds on the previous one."""
    path = f"{BASE}/notes/counter"
    create_document(editor, "notes", id="counter", n=0)
    clients = [service.create_client("admin@t") for _ in range(16)]

    def increment_counter(client: httpx.Client) -> int:
        done = 0
        while done < 5:
            read = client.get(path)
            reply = client.put(path, json={"n": read.json()["n"] + 1}, headers={"If-Match": read.headers["etag"]})
            assert reply.status_code in (200, 412), reply.text
            done += reply.status_code == 200
        return done

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(increment_counter, clients)) == 80
    assert editor.get(path).json()["n"] == 80


def test_document_lists_are_paged(editor: httpx.Client) -> None:
    """A client that follows the continuation tokens gets all pages of a table or of one partition."""
    created = [create_document(editor, "nested", id=f"p{n}", site={"line": f"page{n % 2}"}).json() for n in range(7)]
    seen: list[dict[str, Any]] = []
    token: str | None = None
    while True:
        params = {"partitionKey": "page1", "limit": "2", **({"continuationToken": token} if token else {})}
        page = editor.get(f"{BASE}/nested", params=params).json()
        assert page["count"] == len(page["documents"]) <= 2
        seen += page["documents"]
        token = page["continuationToken"]
        if token is None:
            break
    assert seen == [document for document in created if document["site"]["line"] == "page1"]
    everything = editor.get(f"{BASE}/nested", params={"limit": "1000"}).json()["documents"]
    assert all(document in everything for document in created)


def test_lists_of_documents_with_the_longest_keys_have_pages(editor: httpx.Client) -> None:
    """A continuation token is accepted after a document whose partition key and id have the longest spellings in it."""
    key, names = "\x01" * 2048, ["\u00fc" * 511 + letter for letter in "ab"]
    for name in names:
        assert create_document(editor, id=name, line=key).status_code == 201
    in_partition = {"partitionKey": json.dumps(key), "partitionKeyType": "json"}
    for filters in ({}, in_partition):
        token, found = None, list[str]()
        while token is not None or not found:
            params = {**filters, "limit": "1", **({"continuationToken": token} if token else {})}
            page = editor.get(f"{BASE}/workorders", params=params)
            assert page.status_code == 200, page.text
            found += [document["id"] for document in page.json()["documents"]]
            token = page.json()["continuationToken"]
        assert set(names) <= set(found)
        assert len(found) == len(set(found))
    for name in names:
        url = f"{BASE}/workorders/{quote(name)}"
        assert editor.delete(url, params=in_partition).status_code == 204


def test_continuation_tokens_belong_to_one_list(editor: httpx.Client) -> None:
    """A continuation token that was changed or belongs to another list gets 400 and the parameter's name."""
    for n in range(3):
        create_document(editor, id=f"t{n}", line="tokens")
        create_document(editor, "notes", id=f"t{n}")
    listed = {"partitionKey": "tokens", "limit": "1"}
    token = editor.get(f"{BASE}/workorders", params=listed).json()["continuationToken"]
    assert editor.get(f"{BASE}/workorders", params={**listed, "continuationToken": token}).json()["count"] == 1
    foreign = [
        (f"{BASE}/workorders", {}),
        (f"{BASE}/workorders", {"partitionKey": "l1"}),
        (f"{BASE}/notes", {"partitionKey": "tokens"}),
        ("/oi-api/data-stores/lab/databases/samples/tables/results", {"partitionKey": "tokens"}),
    ]
    for path, params in foreign:
        reply = editor.get(path, params={**params, "continuationToken": token})
        assert check_failing_fields(reply) == ["continuationToken"]
    other = "A" if token[30] != "A" else "B"
    for bad in ("", "x", token[:-1], token + "A", f"{token}=", token[:30] + other + token[31:], "ü", "A" * 20_000):
        reply = editor.get(f"{BASE}/workorders", params={**listed, "continuationToken": bad})
        assert check_failing_fields(reply) == ["continuationToken"], bad


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "1.0", "1_0", " 1", "", "٣"])
def test_an_invalid_limit_of_a_document_list_is_rejected(editor: httpx.Client, limit: str) -> None:
    """A limit outside 1 to 1000 is rejected with the name of the parameter."""
    assert check_failing_fields(editor.get(f"{BASE}/notes", params={"limit": limit})) == ["limit"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "mes/databases/nothing/tables/x", 404, "DATABASE_NOT_FOUND"),
        ("GET", "nowhere/databases/Orders/tables/x", 404, "DATABASE_NOT_FOUND"),
        ("GET", "lab/databases/orders/tables/unknown", 404, "DATABASE_NOT_IN_STORE"),
        ("GET", "nowhere/databases/orders/tables/workorders", 404, "DATABASE_NOT_IN_STORE"),
        ("GET", "mes/databases/orders/tables/unknown", 404, "TABLE_NOT_FOUND"),
        ("GET", "mes/databases/orders/tables/Workorders", 404, "TABLE_NOT_FOUND"),
        ("GET", "mes/databases/orders/tables/planned", 404, "TABLE_NOT_FOUND"),
        ("GET", "mes/databases/orders/tables/hidden/x", 404, "TABLE_NOT_EXPOSED"),
        ("PUT", "mes/databases/orders/tables/recipes/x", 403, "OPERATION_NOT_EXPOSED"),
        ("POST", "mes/databases/orders/tables/recipes", 403, "OPERATION_NOT_EXPOSED"),
        ("GET", "mes/databases/orders/tables/catalogue/x", 403, "OPERATION_NOT_EXPOSED"),
        ("GET", "mes/databases/orders/tables/inbox/x", 403, "OPERATION_NOT_EXPOSED"),
        ("GET", "mes/databases/locked/tables/recipes/x", 400, "PARTITION_KEY_REQUIRED"),
        ("POST", "mes/databases/locked/tables/recipes", 400, "PARTITION_KEY_REQUIRED"),
        ("GET", "mes/databases/locked/tables/recipes", 403, "DATA_PLANE_FORBIDDEN"),
        ("DELETE", "mes/databases/locked/tables/recipes/x?partitionKey=l", 403, "DATA_PLANE_FORBIDDEN"),
    ],
)
def test_document_requests_are_checked_in_a_fixed_order(
    editor: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    """Requests are checked in the order database, store, table, exposure, verb, partition key, access right."""
    check_problem(editor.request(method, f"/oi-api/data-stores/{path}", json={}), status, code)


def test_reading_and_writing_documents_require_different_rights(service: Service) -> None:
    """GET requires the right Document.Read, other methods Document.Write.

    The rules of the table are checked afterwards.
    """
    caller = {
        "GET": service.create_client("admin@t", scopes="Workspace.Document.Read"),
        "WRITE": service.create_client("admin@t", scopes="Workspace.Document.Write"),
    }
    for method, path in (("GET", "notes"), ("GET", "notes/x"), ("POST", "notes"), ("PUT", "x/x"), ("DELETE", "x/x")):
        right = "GET" if method == "GET" else "WRITE"
        other = "WRITE" if method == "GET" else "GET"
        check_problem(caller[other].request(method, f"{BASE}/{path}", json={}), 403, "ACCESS_RIGHT_MISSING")
        assert caller[right].request(method, f"{BASE}/{path}", json={}).status_code != 403
    check_problem(service.create_anonymous_client().get(f"{BASE}/notes"), 401, "UNAUTHENTICATED")
    assert service.create_client("admin@t").patch(f"{BASE}/notes/x").headers["allow"] == "DELETE, GET, HEAD, PUT"


def test_documents_survive_a_kill(own_service: Service) -> None:
    """After a kill, acknowledged documents are stored and continuation tokens are valid."""
    caller = own_service.start().create_client("admin@t")
    etags = {create_document(caller, "notes", id=f"k{n}").json()["id"]: n for n in range(3)}
    token = caller.get(f"{BASE}/notes", params={"limit": "1"}).json()["continuationToken"]
    own_service.kill()
    caller = own_service.start().create_client("admin@t")
    rest = caller.get(f"{BASE}/notes", params={"continuationToken": token}).json()
    assert [document["id"] for document in rest["documents"]] == list(etags)[1:]
