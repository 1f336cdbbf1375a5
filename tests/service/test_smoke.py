"""The tour that deployments are tried with, taken through the local host."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.local_service import ROOT, Service

CHECKS = 15


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return the sample plant, running, with checkpoints made every second."""
    folder = tmp_path_factory.mktemp("smoke") / "data"
    environment = {"CHECKPOINT_SCHEDULE": "*/1 * * * * *"}
    running = Service(folder, ROOT / "samples" / "workspace.yaml", environment).start()
    yield running
    running.stop()


def tour(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Return what the script says and how it ends."""
    command = [str(ROOT / "scripts" / "smoke.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_tour_finds_nothing_wrong(plant: Service) -> None:
    """On the sample plant every check passes, and none is left out."""
    done = tour(plant.url, str(plant.data_dir / "keys.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == f"{CHECKS} checks, 0 failed, 0 not there"
    assert len(lines) == CHECKS + 1
    assert all(line.startswith("ok ") for line in lines[:-1]), done.stdout


def test_the_tour_may_be_taken_again(plant: Service) -> None:
    """What an earlier tour left behind is in the way of no later one."""
    for _ in range(2):
        done = tour(plant.url, str(plant.data_dir / "keys.json"))
        assert done.returncode == 0, done.stdout


def test_a_failed_check_is_told(plant: Service, tmp_path: Path) -> None:
    """Keys that buy no token make the tour fail, and the line says why."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"somebody": "oik_aaaaaaaa_wrong"}))
    done = tour(plant.url, str(keys))
    assert done.returncode == 1
    assert "FAIL tokens" in done.stdout


def test_what_no_key_opens_is_left_out_and_told(plant: Service, tmp_path: Path) -> None:
    """With a reader's key alone, what needs more is named as not there."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"viewer@plant-a.example": plant.key("viewer@plant-a.example")}))
    done = tour(plant.url, str(keys))
    assert "--   amendment      no key of a member with Amendment.Create" in done.stdout
    assert "ok   warm query" in done.stdout


def test_a_check_can_be_skipped(plant: Service) -> None:
    """A check that is named after --without is not made, and the tour says so; an unknown name is wrong usage."""
    arguments = plant.url, str(plant.data_dir / "keys.json")
    done = tour("--without", "download", *arguments)
    assert done.returncode == 0, done.stdout
    assert "--   download       skipped by --without" in done.stdout
    assert done.stdout.splitlines()[-1] == f"{CHECKS} checks, 0 failed, 1 not there"
    wrong = tour("--without", "everything", *arguments)
    assert wrong.returncode == 2
    assert "invalid choice: 'everything'" in wrong.stderr


def test_maker_and_checker_are_found_in_any_order(plant: Service, tmp_path: Path) -> None:
    """Where the first key may do all and the second may not approve, the second makes and the first approves."""
    editor = plant.caller("editor@plant-a.example")
    held = set(editor.get("/workspace/api/keys/whoami").json()["accessRights"])
    wanted = {"name": "maker", "rights": sorted(held - {"Workspace.Amendment.Approve"})}
    maker = editor.post("/workspace/api/keys", json=wanted).json()["apiKey"]
    both = {"admin@plant-a.example": plant.key("admin@plant-a.example"), "maker": maker}
    for order in (both, dict(reversed(both.items()))):
        keys = tmp_path / "keys.json"
        keys.write_text(json.dumps(order))
        done = tour(plant.url, str(keys))
        assert done.returncode == 0, done.stdout
        assert "by maker, approved by admin@plant-a.example" in done.stdout


def test_a_dead_address_fails(tmp_path: Path) -> None:
    """Where nothing answers the tour fails at once; without its two arguments it says how it is used."""
    keys = tmp_path / "keys.json"
    keys.write_text("{}")
    assert tour("http://127.0.0.1:9", str(keys)).returncode == 1
    assert tour("http://127.0.0.1:9").returncode == 2
    assert tour("http://127.0.0.1:9", str(tmp_path / "missing.json")).returncode == 2
