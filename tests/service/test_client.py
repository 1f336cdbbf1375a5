"""Tests of the client library and the command ``oi`` against a running service."""

import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from oi import AsyncWorkspace, ForbiddenError, NotFoundError, Workspace
from oi.cli.main import execute

from local.sign_in.codes import open_sign_in_codes
from tests.service.local_service import Service, wait_until

EDITOR, ADMIN = "editor@t", "admin@t"


@pytest.fixture
def workspace(service: Service) -> Iterator[Workspace]:
    """Yield a workspace of the client library, signed in as an editor."""
    with Workspace(service.url, key=service.read_api_key(EDITOR)) as opened:
        yield opened


@pytest.fixture
def _store_login(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OI_URL", service.url)
    monkeypatch.setenv("OI_KEY", service.read_api_key(EDITOR))
    monkeypatch.delenv("OI_TOKEN", raising=False)


def test_sent_telemetry_can_be_queried(workspace: Workspace) -> None:
    """A query returns sent messages as rows; a message that is sent twice is one row."""
    messages = [{"messageId": f"client-{n}", "deviceId": "client", "value": n} for n in range(3)]
    assert workspace.telemetry.send("press", [*messages, messages[0]]) == 4
    kql = "Telemetry | where DeviceId == 'client' | project Value = toint(Payload.value) | order by Value asc"
    result = wait_until(lambda: workspace.kql(kql), lambda rows: len(rows) == 3)
    assert [row["Value"] for row in result] == [0, 1, 2]
    assert [column.type for column in result.columns] == ["int"]


def test_a_chain_is_appended_queried_exported_and_verified(workspace: Workspace) -> None:
    """An appended record is in the results of a query and in the export, and its chain is valid."""
    record = workspace.audit.append("Tested", "Client", "c-1", scope="client", AfterState={"x": 1})
    page = workspace.audit.query(scope="client", entity_type="Client")
    assert (page.records, page.has_more, page.target) == ([record], False, "DomainEvents")
    exported = workspace.audit.export(scope="client")
    assert (json.loads(exported.content), exported.has_more, exported.damaged) == ([record], False, [])
    verdict = workspace.audit.verify(scope="client", record_id=record["RecordID"])
    assert (verdict["ChainValid"], verdict["Valid"]) == (True, True)


def test_client_errors_have_a_class_and_a_code(workspace: Workspace) -> None:
    """A missing item and a missing right raise different exception classes, each with the error code of the service."""
    with pytest.raises(NotFoundError) as missing:
        workspace.queries.run("nothing")
    assert missing.value.code == "WARM_QUERY_NOT_FOUND"
    with pytest.raises(ForbiddenError):
        workspace.team.put("x@t", {"name": "X", "role": "Viewer"})


def test_items_are_replaced_only_with_a_current_etag(service: Service) -> None:
    """The client lists and reads items, replaces an item only if its ETag is current, and deletes items."""
    with Workspace(service.url, key=service.read_api_key(ADMIN)) as admin:
        admin.surfaces.put("client-hall", {"name": "Client hall", "connections": ["press"]}, create_only=True)
        surface, etag = admin.surfaces.get("client-hall")
        assert admin.surfaces.put("client-hall", {**surface, "name": "Hall"}, etag=etag)["name"] == "Hall"
        admin.surfaces.delete("client-hall")
        assert "client-hall" not in [each["lookup"] for each in admin.surfaces.list()]


async def test_the_asyncio_client_streams_and_queries(service: Service) -> None:
    """The asyncio client has the same methods as the synchronous client.

    Its live stream begins with recent messages.
    """
    async with AsyncWorkspace(service.url, key=service.read_api_key(EDITOR)) as workspace:
        assert (await workspace.whoami())["principal"] == EDITOR
        await workspace.telemetry.send("lathe", {"messageId": "heard-by-client", "value": 1})
        stream = workspace.stream(connection="lathe", since="2020-01-01T00:00:00Z")
        async with asyncio.timeout(30):
            message = await anext(stream)
        assert (message["ID"], message["Payload"]) == ("heard-by-client", {"value": 1})
        await stream.aclose()


def test_the_client_can_read_and_change_documents(workspace: Workspace) -> None:
    """Documents of an exposed table are created, replaced, listed and deleted."""
    orders = workspace.documents("mes", "orders", "workorders")
    created = orders.create({"id": "client-1", "line": "a", "note": "x"})
    assert orders.read("client-1", partition_key="a")["note"] == created["note"]
    assert orders.replace({**created, "note": "y"}, partition_key="a")["note"] == "y"
    assert "client-1" in [each["id"] for each in orders.list(partition_key="a")]
    orders.delete("client-1", partition_key="a")


def test_the_client_selects_partitions_by_numbers(workspace: Workspace) -> None:
    """A number as partition key selects the documents with this number, not those with its text."""
    nested = workspace.documents("mes", "orders", "nested")
    created = nested.create({"id": "client-2", "site": {"line": 42}})
    assert nested.read("client-2", partition_key=42) == created
    assert nested.replace({**created, "note": "y"}, partition_key=42)["note"] == "y"
    assert [each["id"] for each in nested.list(partition_key=42)] == ["client-2"]
    assert list(nested.list(partition_key="42")) == []
    nested.delete("client-2", partition_key=42)


def test_a_key_is_stored_until_the_logout(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`oi login` stores an API key only if the service accepts it; `oi logout` removes the stored key."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OI_URL", "OI_KEY", "OI_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for key, code in (("oik_abcdefgh_wrong", 1), ("", 2), (service.read_api_key(EDITOR), 0)):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{key}\n"))
        assert execute(["login", service.url]) == code
        assert (tmp_path / "oi" / "login.json").exists() == (code == 0)
    assert service.read_api_key(EDITOR) not in capsys.readouterr().out
    assert execute(["whoami"]) == 0
    assert f"({EDITOR}) in plant-t" in capsys.readouterr().out
    assert execute(["logout"]) == 0
    assert execute(["whoami"]) == 2


@pytest.mark.usefixtures("_store_login")
def test_oi_commands_print_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command prints text for people, or with --json the reply body of the service."""
    assert execute(["whoami"]) == 0
    assert f"({EDITOR}) in plant-t" in capsys.readouterr().out
    assert execute(["kql", "print x = 1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == [{"x": 1}]
    append = ["audit", "append", "--scope", "command", "--action-type", "T", "--entity-type", "E", "--entity-id", "1"]
    assert execute(append) == 0
    assert execute(["audit", "verify", "--scope", "command"]) == 0
    assert "the chain is intact" in capsys.readouterr().out
    assert execute(["audit", "verify", "--scope", "comand"]) == 1
    assert "Is the scope spelled correctly?" in capsys.readouterr().out
    for command, member in (
        (["query", "list"], "warmQueries"),
        (["amendments", "list"], "amendments"),
        (["workspace", "export"], "connections"),
        (["connections", "show", "press"], "lookup"),
    ):
        assert execute([*command, "--json"]) == 0
        assert member in json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("_store_login")
def test_oi_audit_fetch_uses_the_stored_login(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`oi audit fetch` uses the stored login.

    If the key is rejected or the address is unknown, the error states the reason.
    """
    out = tmp_path / "access.json"
    fetch = ["audit", "fetch", "--target", "AccessControl", "--out", str(out)]
    assert execute(fetch) == execute([*fetch, service.url]) == 0
    assert json.loads(out.read_text())
    monkeypatch.setenv("OI_KEY", "oik_abcdefgh_wrong")
    assert execute(fetch) == 1
    assert "API key" in capsys.readouterr().err
    monkeypatch.delenv("OI_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert execute([*fetch, service.url]) == 2
    assert f"Run `oi login {service.url}`, or set OI_KEY." in capsys.readouterr().err


def test_webhooks_are_managed_by_commands(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands can create, show, replace and delete a webhook, rotate its secret, and repeat a delivery."""
    monkeypatch.setenv("OI_URL", service.url)
    monkeypatch.setenv("OI_KEY", service.read_api_key(ADMIN))
    url = "http://127.0.0.1:9009/client"
    assert execute(["webhooks", "create", url, "--event-type", "webhook.test", "--json"]) == 0
    created = json.loads(capsys.readouterr().out)
    definition = tmp_path / "webhook.json"
    definition.write_text(json.dumps({"url": url, "eventTypes": ["webhook.test"], "description": "changed"}))
    assert execute(["webhooks", "put", created["id"], str(definition)]) == 0
    assert execute(["webhooks", "put", created["id"], str(definition), "--if-match", '"old"']) == 1
    capsys.readouterr()
    assert execute(["webhooks", "show", created["id"]]) == 0
    assert json.loads(capsys.readouterr().out)["description"] == "changed"
    assert execute(["webhooks", "rotate-secret", created["id"]]) == 0
    assert capsys.readouterr().out.strip() not in {"", created["secret"]}
    assert execute(["webhooks", "test", created["id"]]) == 0
    capsys.readouterr()
    assert execute(["webhooks", "deliveries", created["id"], "--json"]) == 0
    [delivery] = json.loads(capsys.readouterr().out)["deliveries"]
    assert execute(["webhooks", "retry", created["id"], delivery["id"]]) == 0
    assert execute(["webhooks", "retry", created["id"], "unknown"]) == 1
    assert execute(["webhooks", "delete", created["id"], "--yes"]) == 0
    assert execute(["webhooks", "show", created["id"]]) == 1


@pytest.mark.usefixtures("_store_login")
def test_each_line_of_a_telemetry_file_is_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command sends each line of a file; at a line that is not JSON it stops with the line number."""
    path = tmp_path / "messages.ndjson"
    path.write_text('{"value": 1}\n\n{"value": 2}\n')
    assert execute(["send", "press", str(path)]) == 0
    assert "2 messages accepted" in capsys.readouterr().out
    path.write_text('{"value": 1}\nnope\n')
    assert execute(["send", "press", str(path)]) == 2
    assert "line 2: a value is expected" in capsys.readouterr().err
    path.write_text("7")
    assert execute(["send", "press", str(path)]) == 2
    assert "line 1 is not a JSON object" in capsys.readouterr().err
    assert execute(["query", "put", "broken", str(path)]) == 1
    path.write_text("{bad")
    assert execute(["query", "put", "broken", str(path)]) == 2
    assert "messages.ndjson is not JSON" in capsys.readouterr().err


@pytest.mark.usefixtures("_store_login")
def test_exit_codes_of_oi_distinguish_kinds_of_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1 if the service rejects the request, 2 for wrong usage, and 3 for an unreachable service."""
    assert execute(["query", "show", "nothing"]) == 1
    assert execute(["query", "run"]) == 2
    assert execute(["query", "run", "newest", "-p", "novalue"]) == 2
    monkeypatch.setenv("OI_URL", "notaurl")
    assert execute(["whoami"]) == execute(["login", "http://plant.example"]) == 2
    monkeypatch.setattr("oi._sync.transport.sleep", lambda _seconds: None)
    monkeypatch.setenv("OI_URL", "http://127.0.0.1:9")
    assert execute(["whoami"]) == 3
    assert "does not respond" in capsys.readouterr().err


async def test_a_decision_is_signed_with_the_key_typed_again(
    service: Service, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the sign-in is too old for a signature, the user types the API key again, and the signature is stored."""
    made = workspace.amendments.create(
        "client-signed",
        entity_type="Batch",
        entity_id="B-1",
        original={"weight": 41},
        amended={"weight": 14},
        reason_category="data-entry-error",
    )
    code = await open_sign_in_codes(service.data_dir).create(ADMIN)
    token = service.create_anonymous_client().post("/local/sign-in", json={"code": code}).json()["token"]
    monkeypatch.setenv("OI_URL", service.url)
    monkeypatch.setenv("OI_TOKEN", token)
    command = ["amendments", "approve", made["RecordID"], "--scope", "client-signed", "--meaning", "review", "--json"]
    for key, exit_code in ((service.read_api_key(EDITOR), 1), (service.read_api_key(ADMIN), 0)):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{key}\n"))
        assert await asyncio.to_thread(execute, command) == exit_code
    shown = capsys.readouterr()
    assert f"The API key belongs to {EDITOR}, but {ADMIN} is signed in" in shown.err
    signature = json.loads(shown.out)["Signature"]
    assert (signature["UserID"], signature["Meaning"], signature["AuthMethods"]) == (ADMIN, "review", ["key"])
    assert (signature["RecordHash"], signature["Statement"]) == (made["Hash"], None)


def test_the_client_verifies_the_digest_of_a_download(service: Service, workspace: Workspace, tmp_path: Path) -> None:
    """A download is saved only if the file has the SHA-256 that the service states."""
    job = workspace.downloads.connection("press", start="2026-01-01T00:00:00Z", end="2026-01-02T00:00:00Z")
    [path] = job.save(tmp_path)
    assert path.read_text().startswith("timestamp,connection,deviceId,messageId")
    job.job["files"][0]["sha256"] = "0" * 64
    with pytest.raises(ValueError, match="SHA-256"):
        job._fetch_and_verify_file(job.job["files"][0], path)
    assert httpx.get(f"{service.url}/healthz", trust_env=False).status_code == 200
