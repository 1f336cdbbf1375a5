"""Tests of the commands of ``oi`` that show and change a workspace, against a running service."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pyarrow.parquet
import pytest
from oi.cli.main import execute

from tests.service.local_service import Service, wait_until

EDITOR, ADMIN = "editor@t", "admin@t"
Run = Callable[..., str]
"""Function that executes a command and returns its standard output."""


@pytest.fixture(autouse=True)
def _store_login(own_module_service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("OI_URL", own_module_service.url)
    monkeypatch.setenv("OI_KEY", own_module_service.read_api_key(EDITOR))
    monkeypatch.delenv("OI_TOKEN", raising=False)


@pytest.fixture
def run_oi(own_module_service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that executes an `oi` command with a member's key and checks the exit code."""

    def execute_as(*arguments: str, member: str = EDITOR, code: int = 0) -> str:
        monkeypatch.setenv("OI_KEY", own_module_service.read_api_key(member))
        assert execute(list(arguments)) == code, (arguments, capsys.readouterr())
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    return execute_as


def read_json(run_oi: Run, *arguments: str, member: str = EDITOR) -> Any:
    """Execute a command with --json, and return the value that it prints."""
    return json.loads(run_oi(*arguments, "--json", member=member))


def write_json(path: Path, value: Any) -> str:
    """Write a JSON file and return its path."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def test_a_query_is_written_approved_and_executed(run_oi: Run, tmp_path: Path) -> None:
    """Editors can neither run nor approve their own draft query.

    Changes and approvals with an old ETag are rejected. After another person's approval, it runs in each output format.
    """
    file = write_json(
        tmp_path / "query.json", {"name": "Three", "surface": "hall", "kql": "range n from 1 to 3 step 1"}
    )
    old = ("--if-match", '"old"')
    run_oi("query", "put", "three", file, member=ADMIN)
    assert "MAKER_CHECKER_VIOLATION" in run_oi("query", "approve", "three", *old, member=ADMIN, code=1)
    assert "waits for approval" in run_oi("query", "put", "three", file)
    assert "QUERY_NOT_APPROVED" in run_oi("query", "run", "three", code=1)
    run_oi("query", "reject", "three", "--comment", "Say why.", member=ADMIN)
    assert "surface hall, rejected draft" in run_oi("query", "show", "three")
    assert "PRECONDITION_FAILED" in run_oi("query", "put", "three", file, *old, code=1)
    run_oi("query", "put", "three", file)
    assert "PRECONDITION_FAILED" in run_oi("query", "approve", "three", *old, member=ADMIN, code=1)
    etag = read_json(run_oi, "query", "show", "three")["etag"]
    run_oi("query", "approve", "three", "--if-match", etag, member=ADMIN)
    assert run_oi("query", "run", "three", "--limit", "2").split() == ["n", "1", "2"]
    assert [row["n"] for row in read_json(run_oi, "query", "run", "three")["results"]] == [1, 2, 3]
    # The suffix of the file chooses the format, unless an option does.
    for name, options in (
        ("n.csv", ()),
        ("n.parquet", ()),
        ("n.arrow", ()),
        ("n", ()),
        ("m.csv", ("--format", "json")),
    ):
        assert run_oi("query", "run", "three", *options, "-o", str(tmp_path / name)) == ""
    for name in ("n.csv", "n"):
        assert (tmp_path / name).read_text(encoding="utf-8-sig").split() == ["n", "1", "2", "3"]
    assert len(json.loads((tmp_path / "m.csv").read_bytes())["results"]) == 3
    assert pyarrow.parquet.read_table(tmp_path / "n.parquet")["n"].to_pylist() == [1, 2, 3]
    with pyarrow.ipc.open_stream((tmp_path / "n.arrow").read_bytes()) as stream:
        assert stream.read_all()["n"].to_pylist() == [1, 2, 3]
    assert "p.nothing" in run_oi("query", "run", "three", "-p", "nothing=1", code=1)


@pytest.mark.parametrize(
    ("group", "key", "item", "changed"),
    [
        ("connections", "mill", {"name": "Mill", "type": "CLOUD_EVENT_HUB"}, {"name": "Mill 2"}),
        ("surfaces", "yard", {"name": "Yard", "connections": ["press"]}, {"name": "Yard 2"}),
        ("team", "ann@t", {"name": "Ann", "role": "Viewer"}, {"name": "Ann B."}),
    ],
)
def test_commands_can_create_replace_and_delete_items(
    run_oi: Run, tmp_path: Path, group: str, key: str, item: dict[str, Any], changed: dict[str, Any]
) -> None:
    """Commands can create, list, show, replace and delete an item; replacing it with an old ETag is rejected."""
    file = write_json(tmp_path / "item.json", item)
    assert f"{key} is stored" in run_oi(group, "put", key, file, member=ADMIN)
    assert key in run_oi(group, "list")
    shown = read_json(run_oi, group, "show", key)
    file = write_json(tmp_path / "item.json", {**shown, **changed})
    assert read_json(run_oi, group, "put", key, file, member=ADMIN)["name"] == changed["name"]
    assert "PRECONDITION_FAILED" in run_oi(group, "put", key, file, "--if-match", '"old"', member=ADMIN, code=1)
    assert "ACCESS_RIGHT_MISSING" in run_oi(group, "delete", key, "--yes", code=1)
    assert f"{key} is deleted" in run_oi(group, "delete", key, "--yes", member=ADMIN)
    assert "NOT_FOUND" in run_oi(group, "show", key, code=1)


def test_a_document_is_exported_planned_and_applied(run_oi: Run, tmp_path: Path) -> None:
    """The plan of an exported document is empty.

    The plan of a changed document shows the change before it is applied.
    """
    path = tmp_path / "plant.yaml"
    run_oi("workspace", "export", "-o", str(path), member=ADMIN)
    assert run_oi("workspace", "plan", str(path), member=ADMIN).endswith(
        "no changes: the workspace matches the document\n"
    )
    text = path.read_text(encoding="utf-8")
    assert "name: Hall\n" in text
    path.write_text(text.replace("name: Hall\n", "name: Great hall\n"), encoding="utf-8")
    [change] = read_json(run_oi, "workspace", "plan", str(path), member=ADMIN)["changes"]
    assert (change["action"], change["key"]) == ("changed", "hall")
    assert "1 change applied" in run_oi("workspace", "apply", str(path), "--yes", member=ADMIN)
    assert read_json(run_oi, "surfaces", "show", "hall")["name"] == "Great hall"
    path.write_text("workspace: [", encoding="utf-8")
    assert "line" in run_oi("workspace", "plan", str(path), member=ADMIN, code=1)
    path.write_bytes(b"\xff")
    assert "is not UTF-8 text" in run_oi("workspace", "plan", str(path), member=ADMIN, code=2)
    assert "Test plant (plant-t), tier enterprise" in run_oi("workspace", "show")
    assert "Test plant (plant-t), tier enterprise" in run_oi("status")


def test_commands_can_create_and_revoke_api_keys(run_oi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`oi` prints a new API key and nothing else, so that scripts can store it; a revoked key is rejected."""
    key = run_oi("keys", "create", "bound", "--connection", "press", "--device", "p-*").strip()
    assert key.startswith("oik_")
    assert key.split("_")[1] in run_oi("keys", "list")
    created = read_json(
        run_oi, "keys", "create", "report", "--right", "Workspace.Catalog.Read", "--expires-in-days", "1"
    )
    assert created["accessRights"] == ["Workspace.Catalog.Read"]
    for each in (key.split("_")[1], created["keyId"]):
        assert f"key {each} is revoked" in run_oi("keys", "revoke", each)
    monkeypatch.setenv("OI_KEY", key)
    assert execute(["whoami"]) == 1


def test_an_amendment_is_created_listed_and_decided(run_oi: Run) -> None:
    """A new amendment is pending until another person decides about it; a second decision is rejected."""
    names = ["--scope", "oi", "--entity-type", "Batch", "--entity-id", "B-1", "--reason-category", "other"]
    values = ["--original", '{"weight": 41}', "--amended", '{"weight": 14}', "--reason-text", "Swapped digits."]
    created = read_json(run_oi, "amendments", "create", *names, *values)
    record_id = created["RecordID"]
    assert created["ChangedFields"] == ["weight"]
    assert record_id in run_oi("amendments", "list")
    pending = read_json(run_oi, "amendments", "list")["amendments"]
    assert (record_id, "oi") in [(each["RecordID"], each["ScopeKey"]) for each in pending]
    assert [each["RecordID"] for each in read_json(run_oi, "amendments", "list", "--scope", "oi")] == [record_id]
    assert f"{record_id} is approved" in run_oi("amendments", "approve", record_id, "--scope", "oi", member=ADMIN)
    refused = run_oi("amendments", "reject", record_id, "--scope", "oi", "--reason", "No.", member=ADMIN, code=1)
    assert "AMENDMENT_NOT_PENDING" in refused


def test_commands_can_query_export_and_prove_audit_events(run_oi: Run, tmp_path: Path) -> None:
    """Commands can query audit events, export them as CSV, prove an event with a checkpoint, and list the chain."""
    names = ["--entity-type", "Valve", "--entity-id", "V-7", "--after-state", '{"open": true}']
    record = read_json(run_oi, "audit", "append", "--scope", "proved", "--action-type", "Valve.Opened", *names)
    assert read_json(run_oi, "audit", "query", "--scope", "proved", "--entity-type", "Valve") == [record]
    assert "Valve.Opened" in run_oi("audit", "query", "--scope", "proved")
    run_oi("audit", "export", "--scope", "proved", "--format", "csv", "-o", str(tmp_path / "proved.csv"))
    assert "Valve.Opened" in (tmp_path / "proved.csv").read_text(encoding="utf-8")
    prove = ["audit", "prove", record["RecordID"], "--scope", "proved", "--json"]
    wait_until(lambda: execute(prove), lambda code: code == 0, 90)
    shown = run_oi("audit", "prove", record["RecordID"], "--scope", "proved")
    assert f"record {record['RecordID']} is leaf 0 of 1" in shown
    assert "proved" in run_oi("audit", "scopes", "--target", "DomainEvents")
    assert "no signatures" in run_oi("audit", "signatures")


def test_alerts_are_configured_and_acknowledged(run_oi: Run, tmp_path: Path) -> None:
    """Commands can create an alert rule, acknowledge its alert, and delete the rule."""
    rule = {
        "name": "Lathe is silent",
        "severity": "info",
        "surface": "hall",
        "kind": "absence",
        "every": "P1D",
        "connections": ["lathe"],
        "after": "PT0.001S",
    }
    run_oi("alerts", "rules", "put", "silent", write_json(tmp_path / "rule.json", rule))
    assert "silent" in run_oi("alerts", "rules", "list")
    find = ["alerts", "list", "--state", "firing"]
    [alert] = wait_until(lambda: read_json(run_oi, *find)["alerts"], bool, 60)
    assert "silent" in run_oi(*find)
    acknowledged = read_json(run_oi, "alerts", "acknowledge", alert["id"], "--comment", "Switched off.")
    assert (acknowledged["acknowledgedBy"], acknowledged["comment"]) == (EDITOR, "Switched off.")
    assert "ALERT_NOT_FOUND" in run_oi("alerts", "acknowledge", "unknown", code=1)
    assert read_json(run_oi, "alerts", "rules", "show", "silent")["lookup"] == "silent"
    run_oi("alerts", "rules", "delete", "silent", "--yes")


def test_live_messages_are_printed_as_lines(run_oi: Run, tmp_path: Path) -> None:
    """If standard output is not a terminal, `oi` prints each live message as one line.

    The lookup (id in URLs) of an unknown connection is rejected.
    """
    run_oi(
        "send", "press", write_json(tmp_path / "message.json", {"messageId": "live-1", "deviceId": "p-1", "level": 3})
    )
    recent = ["tail", "--connection", "press", "--since", "2020-01-01T00:00:00Z", "--count", "1"]
    assert run_oi(*recent).endswith("  press  p-1  level 3\n")
    message = read_json(run_oi, *recent)
    assert (message["ID"], message["Payload"]) == ("live-1", {"level": 3})
    assert "nothing" in run_oi("tail", "--connection", "nothing", "--count", "1", code=1)


def test_input_that_is_not_json_is_wrong_usage(
    run_oi: Run, own_module_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input that is not valid UTF-8 or JSON is reported as wrong usage, and nothing is sent."""
    for content in (b"\xff\xfe", b'{"a": 1, "a": 2}', b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        run_oi("connections", "put", "mill", "-", member=ADMIN, code=2)
