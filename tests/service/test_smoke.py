"""Tests of the smoke test for deployments, run against the local host."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.local_service import ROOT, Service

CHECKS = 15


@pytest.fixture(scope="module")
def sample_plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a running service with the sample workspace, which creates a checkpoint every second."""
    folder = tmp_path_factory.mktemp("smoke") / "data"
    environment = {"CHECKPOINT_SCHEDULE": "*/1 * * * * *"}
    running = Service(folder, ROOT / "samples" / "workspace.yaml", environment).start()
    yield running
    running.stop()


def run_smoke_test(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the smoke test script and return its output and exit code."""
    command = [str(ROOT / "scripts" / "smoke.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_smoke_test_passes(sample_plant: Service) -> None:
    """On a service with the sample workspace every check of the smoke test passes, and none is skipped."""
    done = run_smoke_test(sample_plant.url, str(sample_plant.data_dir / "keys.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == f"{CHECKS} checks, 0 failed, 0 not available"
    assert len(lines) == CHECKS + 1
    assert all(line.startswith("ok ") for line in lines[:-1]), done.stdout


def test_the_smoke_test_can_be_repeated(sample_plant: Service) -> None:
    """The data of an earlier run of the smoke test does not affect a later run."""
    for _ in range(2):
        done = run_smoke_test(sample_plant.url, str(sample_plant.data_dir / "keys.json"))
        assert done.returncode == 0, done.stdout


def test_the_smoke_test_reports_a_failed_check(sample_plant: Service, tmp_path: Path) -> None:
    """With invalid API keys the smoke test fails, and its output says why."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"somebody": "oik_aaaaaaaa_wrong"}))
    done = run_smoke_test(sample_plant.url, str(keys))
    assert done.returncode == 1
    assert "FAIL tokens" in done.stdout


def test_checks_that_need_missing_rights_are_skipped_and_listed(sample_plant: Service, tmp_path: Path) -> None:
    """With the API key of a viewer, checks that need more rights are listed as skipped."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"viewer@plant-a.example": sample_plant.read_api_key("viewer@plant-a.example")}))
    done = run_smoke_test(sample_plant.url, str(keys))
    assert "--   amendment      no API key belongs to a member with the rights Amendment.Create" in done.stdout
    assert "ok   warm query" in done.stdout


def test_a_check_of_the_smoke_test_can_be_skipped(sample_plant: Service) -> None:
    """A check named by --without is skipped and listed; an unknown name is a usage error."""
    arguments = sample_plant.url, str(sample_plant.data_dir / "keys.json")
    done = run_smoke_test("--without", "download", *arguments)
    assert done.returncode == 0, done.stdout
    assert "--   download       the check was skipped because of --without" in done.stdout
    assert done.stdout.splitlines()[-1] == f"{CHECKS} checks, 0 failed, 1 not available"
    wrong = run_smoke_test("--without", "everything", *arguments)
    assert wrong.returncode == 2
    assert "invalid choice: 'everything'" in wrong.stderr


def test_the_api_keys_of_the_smoke_test_can_be_in_any_order(sample_plant: Service, tmp_path: Path) -> None:
    """If only the first API key may approve, the smoke test uses the second key to create the amendment."""
    editor = sample_plant.create_client("editor@plant-a.example")
    granted = set(editor.get("/workspace/api/keys/whoami").json()["accessRights"])
    expected = {"name": "maker", "rights": sorted(granted - {"Workspace.Amendment.Approve"})}
    maker = editor.post("/workspace/api/keys", json=expected).json()["apiKey"]
    both = {"admin@plant-a.example": sample_plant.read_api_key("admin@plant-a.example"), "maker": maker}
    for order in (both, dict(reversed(both.items()))):
        keys = tmp_path / "keys.json"
        keys.write_text(json.dumps(order))
        done = run_smoke_test(sample_plant.url, str(keys))
        assert done.returncode == 0, done.stdout
        assert "by maker, approved by admin@plant-a.example" in done.stdout


def test_the_smoke_test_fails_at_an_unreachable_address(tmp_path: Path) -> None:
    """The smoke test fails at once for an unreachable address; without arguments it prints its usage."""
    keys = tmp_path / "keys.json"
    keys.write_text("{}")
    assert run_smoke_test("http://127.0.0.1:9", str(keys)).returncode == 1
    assert run_smoke_test("http://127.0.0.1:9").returncode == 2
    assert run_smoke_test("http://127.0.0.1:9", str(tmp_path / "missing.json")).returncode == 2


STRICT = """
workspace: {id: plant-a, name: Plant A}
tier: pro
policies: {telemetry: {requireDeclaredDevices: true, requireBoundKeys: true}}
team:
  - {id: admin@plant-a.example, name: Administrator, role: Admin}
  - {id: editor@plant-a.example, name: Engineer, role: Editor, rights: [Workspace.Amendment.Approve]}
connections:
  - {lookup: a-rig, name: Rig, type: CLOUD_EVENT_HUB, source: {devices: ["rig-*"], messageIdPointer: /header/id}}
  - {lookup: b-gateway, name: Gateway, type: CLOUD_IOT_HUB, source: {devices: ["gw-*"], deviceIdPointer: ""}}
  - {lookup: c-mes, name: Orders, type: CLOUD_EVENT_HUB, enabled: false}
"""
ADMIN = "admin@plant-a.example"


@pytest.fixture(scope="module")
def strict_plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a running service without an audit log, whose policies require bound keys and declared devices."""
    folder = tmp_path_factory.mktemp("strict")
    document = folder / "workspace.yaml"
    document.write_text(STRICT, encoding="utf-8")
    running = Service(folder / "data", document, {"CHECKPOINT_SCHEDULE": "*/1 * * * * *"}).start()
    yield running
    running.stop()


def _write_keys(plant: Service, path: Path, **binding: list[str]) -> str:
    """Write a file with the keys of both members, and a bound key if a binding is given; return its path."""
    keys = {member: plant.read_api_key(member) for member in (ADMIN, "editor@plant-a.example")}
    if binding:
        body = {"name": "gateway", **binding}
        made = plant.create_client(ADMIN).post("/workspace/api/keys", json=body)
        assert made.status_code == 201, made.text
        keys = {"gateway": made.json()["apiKey"], **keys}
    path.write_text(json.dumps(keys), encoding="utf-8")
    return str(path)


def test_the_smoke_test_follows_the_rules_for_telemetry(strict_plant: Service, tmp_path: Path) -> None:
    """The message has a declared device, its id where the connection reads it, and the sender has a bound key."""
    keys = _write_keys(strict_plant, tmp_path / "keys.json", connections=["a-rig"], devices=["rig-7*"])
    done = run_smoke_test(strict_plant.url, keys)
    assert done.returncode == 0, done.stdout
    assert "ok   telemetry      a-rig, in the table" in done.stdout


def test_without_a_bound_key_the_check_of_telemetry_is_skipped(strict_plant: Service, tmp_path: Path) -> None:
    """If a policy requires a bound key and the file has none, the line of the check names the policy."""
    done = run_smoke_test(strict_plant.url, _write_keys(strict_plant, tmp_path / "keys.json"))
    assert done.returncode == 0, done.stdout
    assert "--   telemetry      the policy requireBoundKeys requires an API key" in done.stdout


def test_without_an_audit_log_its_checks_are_skipped(strict_plant: Service, tmp_path: Path) -> None:
    """In a workspace without a policy for provenance all checks of the audit log are skipped, and none fails."""
    done = run_smoke_test(strict_plant.url, _write_keys(strict_plant, tmp_path / "keys.json"))
    assert done.returncode == 0, done.stdout
    for check in ("audit event", "verification", "export", "checkpoint", "amendment"):
        assert f"--   {check:14} the audit log is not provisioned" in done.stdout


def test_without_an_allowed_device_the_check_of_telemetry_is_skipped(strict_plant: Service, tmp_path: Path) -> None:
    """If no device fits both the connection and the key, the line of the check names the connections."""
    keys = _write_keys(strict_plant, tmp_path / "keys.json", connections=["b-gateway"])
    done = run_smoke_test(strict_plant.url, keys)
    assert "--   telemetry      no API key can send a test message" in done.stdout
    assert "a-rig, b-gateway" in done.stdout


def test_the_connection_of_the_telemetry_message_can_be_chosen(sample_plant: Service) -> None:
    """--connection selects the connection of the message; the check fails if it cannot receive messages."""
    keys = str(sample_plant.data_dir / "keys.json")
    done = run_smoke_test("--connection", "pump-rig", sample_plant.url, keys)
    assert "ok   telemetry      pump-rig, in the table" in done.stdout
    done = run_smoke_test("--connection", "mes-events", sample_plant.url, keys)
    assert done.returncode == 1
    assert "FAIL telemetry      CheckFailedError: --connection mes-events: no enabled connection" in done.stdout
