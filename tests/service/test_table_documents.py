"""Documents of published tables over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem

BASE = "/oi-api/data-stores/mes/databases/orders/tables"
OWN = {"_rid", "_self", "_etag", "_attachments", "_ts"}


@pytest.fixture(scope="module")
def editor(service: Service) -> httpx.Client:
    """A caller that may read and write documents."""
    return service.caller("admin@t")


def make(client: httpx.Client, table: str = "workorders", **document: Any) -> httpx.Response:
    """Return the reply to a POST of a document."""
    return client.post(f"{BASE}/{table}", json=document)


def test_a_document_lives(editor: httpx.Client) -> None:
    """The whole life: made, read by its Location, replaced, read on condition, removed."""
    made = make(editor, id="life", line="l1", n=1)
    assert made.status_code == 201, made.text
    assert made.json() == {"id": "life", "line": "l1", "n": 1}
    assert made.headers["location"] == f"{BASE}/workorders/life?partitionKey=l1"
    etag = made.headers["etag"]
    read = editor.get(made.headers["location"])
    assert (read.status_code, read.json(), read.headers["etag"]) == (200, made.json(), etag)
    known = editor.get(made.headers["location"], headers={"If-None-Match": f'"x", W/{etag}'})
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", etag)
    check_problem(make(editor, id="life", line="l1"), 409, "DOCUMENT_EXISTS")
    assert make(editor, id="life", line="l2").status_code == 201
    put = editor.put(f"{BASE}/workorders/life", json={"line": "l1", "n": 2})
    assert (put.status_code, put.json()) == (200, {"id": "life", "line": "l1", "n": 2})
    assert put.headers["etag"] not in ("", etag)
    assert editor.get(made.headers["location"]).json()["n"] == 2
    gone = editor.delete(made.headers["location"])
    assert (gone.status_code, gone.content) == (204, b"")
    for call in (editor.get, editor.delete):
        check_problem(call(made.headers["location"]), 404, "DOCUMENT_NOT_FOUND")
    check_problem(editor.put(f"{BASE}/workorders/life", json={"line": "l1"}), 404, "DOCUMENT_NOT_FOUND")
    assert editor.get(f"{BASE}/workorders/life", params={"partitionKey": "l2"}).status_code == 200


def test_an_id_is_made_where_there_is_none(editor: httpx.Client) -> None:
    """A document without an id gets one; a table partitioned on it needs no partition key."""
    made = make(editor, "notes", text="x")
    assert made.status_code == 201
    document_id = made.json()["id"]
    assert made.headers["location"] == f"{BASE}/notes/{document_id}"
    assert editor.get(made.headers["location"]).json() == {"id": document_id, "text": "x"}
    check_problem(editor.get(made.headers["location"], params={"partitionKey": "other"}), 404, "DOCUMENT_NOT_FOUND")


def test_members_of_the_account_are_neither_taken_nor_shown(editor: httpx.Client) -> None:
    """A document that was read from the account directly can be written; its system members do not stay."""
    sent = {"id": "bare", "_own": 1, **dict.fromkeys(OWN, "x")}
    assert make(editor, "notes", **sent).json() == {"id": "bare", "_own": 1}
    assert editor.get(f"{BASE}/notes/bare").json() == {"id": "bare", "_own": 1}


@pytest.mark.parametrize("value", ["a b/ü", "", "null", 7, -0.5, True, False, None])
def test_partition_keys_of_every_type_are_kept_apart(editor: httpx.Client, value: Any) -> None:
    """A text, a number, a boolean and null address what was stored under them; the Location shows how."""
    made = make(editor, "nested", id="typed", site={"line": value})
    assert made.status_code == 201, made.text
    assert editor.get(made.headers["location"]).json()["site"] == {"line": value}
    params = {"partitionKey": json.dumps(value), "partitionKeyType": "json"}
    assert editor.get(f"{BASE}/nested/typed", params=params).status_code == 200
    listed = editor.get(f"{BASE}/nested", params=params).json()
    assert listed == {"documents": [made.json()], "count": 1, "continuationToken": None}
    replaced = editor.put(f"{BASE}/nested/typed", json={"site": {"line": value}, "n": 2})
    assert replaced.json()["n"] == 2
    assert editor.delete(f"{BASE}/nested/typed", params=params).status_code == 204


def test_one_and_one_point_zero_are_one_partition(editor: httpx.Client) -> None:
    """Numbers are doubles; the text of a number is another key."""
    assert make(editor, "nested", id="one", site={"line": 1}).status_code == 201
    for text, status in (("1.0", 200), ("1", 200), ('"1"', 404), ("true", 404)):
        params = {"partitionKey": text, "partitionKeyType": "json"}
        assert editor.get(f"{BASE}/nested/one", params=params).status_code == status


@pytest.mark.parametrize("document_id", ["ü ñ 漢字 😀", "a+b%20c&d=e", "x" * 1023, "…", "a:b;c,d", '"quoted"', "%2e"])
def test_ids_are_any_text_that_the_account_takes(editor: httpx.Client, document_id: str) -> None:
    """What the rules allow can be stored and found by the Location."""
    made = make(editor, "notes", id=document_id)
    assert made.status_code == 201, made.text
    assert editor.get(made.headers["location"]).json() == {"id": document_id}
    assert editor.delete(made.headers["location"]).status_code == 204


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
def test_ids_that_the_account_would_not_take_are_refused(editor: httpx.Client, document_id: Any) -> None:
    """A bad id is a 400 that names it, in the body as in the address."""
    assert check_failing_fields(make(editor, "notes", id=document_id)) == ["id"]
    if isinstance(document_id, str) and document_id.strip(".") and len(document_id) < 2000:
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
def test_bodies_that_disagree_are_refused(
    editor: httpx.Client, query: str, body: dict[str, Any], fields: list[str]
) -> None:
    """Id and partition key of a body are those of the address, and of the types that accounts take."""
    make(editor, id="put", line="l1")
    assert check_failing_fields(editor.put(f"{BASE}/workorders/put{query}", json=body)) == fields


@pytest.mark.parametrize("text", ["[1]", "{}", "x", "", "NaN", "1e999", '"a', "9" * 400, "9" * 5000])
def test_a_typed_partition_key_is_a_json_scalar(editor: httpx.Client, text: str) -> None:
    """With partitionKeyType=json anything but a scalar is a 400."""
    params = {"partitionKey": text, "partitionKeyType": "json"}
    for path in ("workorders", "workorders/x"):
        assert check_failing_fields(editor.get(f"{BASE}/{path}", params=params)) == ["partitionKey"]


@pytest.mark.parametrize("content", [b"[]", b"[{}]", b"5", b"null", b'"x"'])
def test_a_document_is_an_object(editor: httpx.Client, content: bytes) -> None:
    """Other JSON values are refused."""
    assert check_failing_fields(editor.post(f"{BASE}/notes", content=content)) == ["body"]
    assert check_failing_fields(editor.put(f"{BASE}/notes/x", content=content)) == ["body"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"a":1,"a":2}', b"\xff"])
def test_a_body_is_strict_json(editor: httpx.Client, content: bytes) -> None:
    """What is no strict JSON is refused."""
    check_problem(editor.post(f"{BASE}/notes", content=content), 400, "BODY_NOT_JSON")


def test_sizes_end_at_two_megabytes(editor: httpx.Client) -> None:
    """A document of 2,000,000 bytes is stored; one byte more, and a body over 2 MiB, are 413."""
    frame = len(b'{"id":"big","line":"l","pad":""}')
    fits = {"id": "big", "line": "l", "pad": "x" * (2_000_000 - frame)}
    assert make(editor, **fits).status_code == 201
    assert editor.get(f"{BASE}/workorders/big", params={"partitionKey": "l"}).json() == fits
    check_problem(make(editor, **fits | {"pad": fits["pad"] + "x"}), 413, "DOCUMENT_TOO_LARGE")
    check_problem(
        editor.put(f"{BASE}/workorders/big", json=fits | {"pad": fits["pad"] + "x"}), 413, "DOCUMENT_TOO_LARGE"
    )
    check_problem(make(editor, pad="x" * 2 * 1024 * 1024), 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_single_documents_need_their_partition_key(editor: httpx.Client, method: str) -> None:
    """Without it a call is refused, unless the table is partitioned on the id or a PUT's body names it."""
    reply = editor.request(method, f"{BASE}/workorders/x", json={"n": 1})
    assert check_failing_fields(reply, 400, "PARTITION_KEY_REQUIRED") == ["partitionKey"]
    check_problem(editor.request(method, f"{BASE}/notes/nothing", json={}), 404, "DOCUMENT_NOT_FOUND")


def test_a_new_document_has_its_partition_key(editor: httpx.Client) -> None:
    """A document without one could not be addressed afterwards."""
    check_problem(make(editor, id="keyless"), 400, "PARTITION_KEY_REQUIRED")
    check_problem(make(editor, "nested", id="keyless", site="l1"), 400, "PARTITION_KEY_REQUIRED")


def test_writes_hold_to_their_conditions(editor: httpx.Client) -> None:
    """A stale or weak tag is 412, a malformed one 400, a list or * is taken; nothing happens on a refusal."""
    path = f"{BASE}/notes/conditional"
    stale = make(editor, "notes", id="conditional", n=0).headers["etag"]
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


def test_no_update_is_lost(service: Service, editor: httpx.Client) -> None:
    """16 writers that replace one document under If-Match in a loop: each success counts once."""
    path = f"{BASE}/notes/counter"
    make(editor, "notes", id="counter", n=0)
    clients = [service.caller("admin@t") for _ in range(16)]

    def write(client: httpx.Client) -> int:
        done = 0
        while done < 5:
            read = client.get(path)
            reply = client.put(path, json={"n": read.json()["n"] + 1}, headers={"If-Match": read.headers["etag"]})
            assert reply.status_code in (200, 412), reply.text
            done += reply.status_code == 200
        return done

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(write, clients)) == 80
    assert editor.get(path).json()["n"] == 80


def test_lists_page(editor: httpx.Client) -> None:
    """Pages follow one another by their token, of the whole table and of one partition."""
    made = [make(editor, "nested", id=f"p{n}", site={"line": f"page{n % 2}"}).json() for n in range(7)]
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
    assert seen == [document for document in made if document["site"]["line"] == "page1"]
    everything = editor.get(f"{BASE}/nested", params={"limit": "1000"}).json()["documents"]
    assert all(document in everything for document in made)


def test_tokens_are_of_one_list_only(editor: httpx.Client) -> None:
    """A tampered token, and one of another table, database or partition, is a 400 naming it."""
    for n in range(3):
        make(editor, id=f"t{n}", line="tokens")
        make(editor, "notes", id=f"t{n}")
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
def test_limits_are_from_one_to_a_thousand(editor: httpx.Client, limit: str) -> None:
    """Everything else is refused by name."""
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
def test_refusals_come_in_their_order(editor: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    """Database, store, table, exposure, verb, partition key, access: the first that holds is the answer."""
    check_problem(editor.request(method, f"/oi-api/data-stores/{path}", json={}), status, code)


def test_reading_and_writing_are_two_rights(service: Service) -> None:
    """GET needs Document.Read, everything else Document.Write; the right comes before what the table refuses."""
    caller = {
        "GET": service.caller("admin@t", scopes="Workspace.Document.Read"),
        "WRITE": service.caller("admin@t", scopes="Workspace.Document.Write"),
    }
    for method, path in (("GET", "notes"), ("GET", "notes/x"), ("POST", "notes"), ("PUT", "x/x"), ("DELETE", "x/x")):
        right = "GET" if method == "GET" else "WRITE"
        other = "WRITE" if method == "GET" else "GET"
        check_problem(caller[other].request(method, f"{BASE}/{path}", json={}), 403, "ACCESS_RIGHT_MISSING")
        assert caller[right].request(method, f"{BASE}/{path}", json={}).status_code != 403
    check_problem(service.anonymous().get(f"{BASE}/notes"), 401, "UNAUTHENTICATED")
    assert service.caller("admin@t").patch(f"{BASE}/notes/x").headers["allow"] == "DELETE, GET, HEAD, PUT"


def test_restart_keeps_documents(own_service: Service) -> None:
    """What was answered with 201 is there after a power cut, and tokens of lists hold on."""
    caller = own_service.start().caller("admin@t")
    etags = {make(caller, "notes", id=f"k{n}").json()["id"]: n for n in range(3)}
    token = caller.get(f"{BASE}/notes", params={"limit": "1"}).json()["continuationToken"]
    own_service.kill()
    caller = own_service.start().caller("admin@t")
    rest = caller.get(f"{BASE}/notes", params={"continuationToken": token}).json()
    assert [document["id"] for document in rest["documents"]] == list(etags)[1:]
