"""Tests of the sizing model's formulas, command and page."""

import json
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from functions.orchestration_history import get_history_job
from scripts.sizing import facts
from scripts.sizing.__main__ import WRONG_OPTIONS, main
from scripts.sizing.load import EXAMPLES, Load
from scripts.sizing.model import compute_deployment_sizes
from shared.background.runner import Schedule
from shared.settings import Settings
from shared.wiring import Services

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "how-to" / "size-a-deployment.md"
BICEP = ROOT / "infra" / "bicep"
ANY_TIME = datetime(2026, 1, 5, 12, 34, 56, tzinfo=UTC)


# The partition of connection states shrinks when a hub gets more partitions, and with it the item that is written.


def _read_parameter_default(name: str, text: str) -> str:
    found = re.search(rf"^param {name} \w+ = (.+)$", text, re.MULTILINE)
    assert found, name
    return found[1]


def test_numbers_of_the_sizing_model_equal_those_of_the_templates() -> None:
    """Each number of the sizing model from the Bicep templates or host.json equals the value there."""
    main_text = (BICEP / "main.bicep").read_text(encoding="utf-8")
    assert int(_read_parameter_default("hubPartitions", main_text)) == facts.LEAST_PARTITIONS
    assert int(_read_parameter_default("maximumInstances", main_text)) == facts.DEFAULT_INSTANCES
    assert int(_read_parameter_default("httpConcurrency", main_text)) == facts.HTTP_CONCURRENCY
    assert int(_read_parameter_default("archiveCoolAfterDays", main_text)) == facts.HOT_ARCHIVE_DAYS
    assert int(_read_parameter_default("instanceMemoryMb", main_text)) == Load().instance_memory_mb
    assert int(_read_parameter_default("telemetryHotDays", main_text)) == Load().hot_days
    assert int(_read_parameter_default("telemetryRetentionDays", main_text)) == Load().retention_days
    host = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))
    assert host["extensions"]["eventHubs"]["maxEventBatchSize"] == facts.BATCH_EVENTS
    production = (BICEP / "prod.bicepparam").read_text(encoding="utf-8")
    ready = re.findall(r"\{ name: '(?:function:)?(\w+)', instanceCount: (\d+) \}", production)
    # With zone redundancy Azure adds two instances of each function that is not listed.
    assert {name: int(count) for name, count in ready} | {"background": 2} == facts.ALWAYS_READY


def test_the_sizing_command_names_a_wrong_value(capsys: pytest.CaptureFixture[str]) -> None:
    """The command rejects an unknown option and a value that is out of range or not a number."""
    assert main(["--messages-per-second", "nan"]) == WRONG_OPTIONS
    assert "`messages_per_second`" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["--unicorns", "1"])


def _read_commands() -> list[tuple[str, str]]:
    """Return each command of the sizing page with the output that the page shows."""
    blocks = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [(command, output) for command, output in blocks]


@pytest.mark.parametrize(("command", "output"), _read_commands(), ids=lambda text: text[:70])
def test_the_sizing_page_shows_the_output_of_its_commands(command: str, output: str) -> None:
    """Each command on the sizing page prints the lines that the page shows, in the same order."""
    arguments = shlex.split(command)
    assert arguments[0] == ".venv/bin/python"
    done = subprocess.run(
        [sys.executable, *arguments[1:]], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    shown = "".join(".*\n" if line.strip() == "…" else f"{re.escape(line)}\n" for line in output.splitlines())
    assert re.fullmatch(shown, done.stdout, re.DOTALL), f"{command} prints\n{done.stdout}"


def test_the_sizing_page_shows_every_example() -> None:
    """The sizing page shows the output of each example."""
    commands = " ".join(command for command, _ in _read_commands())
    assert all(f"--example {name}" in commands for name in EXAMPLES)


async def test_the_sizing_page_shows_the_schedule_of_each_background_job(tmp_path: Path) -> None:
    """The sizing page has a row for each background job of the service, with its schedule and monthly runs."""
    runs = compute_deployment_sizes(Load(simulators=True, listeners=1)).background.runs_per_month
    services = Services(Settings.read({"DATA_DIR": str(tmp_path), "WEB_PUBSUB_ENDPOINT": "https://live.example"}))
    jobs = (*services.background._iterate_jobs(), get_history_job())
    schedules = {job.name: job.schedule for job in jobs}
    await services.close()
    rows = re.findall(r"^\| `([\w-]+)` \| `([^`]+)` \| ([\d,]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: count for name, _, count in rows} == {name: f"{count:,.0f}" for name, count in runs.items()}
    assert {name: Schedule(text).compute_next_due_time(ANY_TIME) for name, text, _ in rows} == {
        name: schedule.compute_next_due_time(ANY_TIME) for name, schedule in schedules.items()
    }
