"""The sizing model: its formulas, its command and the page that explains it."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scripts.sizing import facts
from scripts.sizing.__main__ import WRONG_OPTIONS, main
from scripts.sizing.load import EXAMPLES, MAX_VALUE, Load
from scripts.sizing.model import Sizes, calculate_quantities, find_exceeded_limits, size_deployment
from scripts.sizing.prices import METERS, read_prices
from scripts.sizing.services import compute_partition_rate, compute_read_ru, compute_write_ru
from shared.oauth.grant_ending import SCHEDULE as GRANTS_SCHEDULE
from shared.settings import Settings

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "how-to" / "size-a-deployment.md"
PRICES = ROOT / "samples" / "prices.example.yaml"
BICEP = ROOT / "infra" / "bicep"

LOADS = st.builds(
    Load,
    deployments=st.integers(1, 60),
    connections=st.integers(1, 20_000),
    messages_per_second=st.floats(0, 1e6),
    message_bytes=st.integers(0, 250_000),
    listeners=st.integers(0, 10_000),
    connections_per_listener=st.integers(1, 100),
    http_requests_per_second=st.floats(0, 10_000),
    audit_events_per_second=st.floats(0, 1_000),
    audit_scopes=st.integers(1, 1_000),
    audit_record_bytes=st.integers(0, 1_500_000),
    hot_days=st.integers(0, 400),
    retention_days=st.integers(0, 400),
    archive_days=st.integers(0, 4_000),
    instance_memory_mb=st.sampled_from((512, 2048, 4096)),
    production=st.booleans(),
)
GROWING = (
    "messages_per_second",
    "message_bytes",
    "listeners",
    "connections_per_listener",
    "http_requests_per_second",
    "audit_events_per_second",
    "audit_record_bytes",
    "audit_days",
    "hot_days",
    "retention_days",
    "archive_days",
)


def _capacities(sizes: Sizes) -> dict[str, float]:
    """Return the sizes that must not shrink when the load grows."""
    return {
        "throughput units": sizes.event_hubs.throughput_units,
        "processing units": sizes.event_hubs.processing_units,
        "partitions": sizes.event_hubs.partitions,
        "instances": sum(group.instances for group in sizes.functions.values()),
        "billed seconds": sum(group.billed_seconds_per_second for group in sizes.functions.values()),
        "request units": sizes.cosmos.total_ru_per_second,
        "verification": sizes.cosmos.verify_seconds,
        "chains": sizes.cosmos.stored_gb,
        "cores": sizes.data_explorer.cores,
        "stored": sizes.data_explorer.stored_gb,
        "archive": sizes.archive.gb,
        "Web PubSub units": sizes.live_stream.units,
    }


# The partition of connection states shrinks when a hub gets more partitions, and with it the item that is written.
@given(LOADS, st.sampled_from(GROWING), st.floats(1, 10))
def test_a_larger_load_never_needs_less(load: Load, field: str, factor: float) -> None:
    """Growth of one part of the load shrinks no size, except request units of connection states."""
    grown = getattr(load, field) * factor
    larger = replace(load, **{field: type(getattr(load, field))(min(grown, MAX_VALUE))})
    before, after = size_deployment(load), size_deployment(larger)
    for name, capacity in _capacities(before).items():
        allowance = before.cosmos.ru_per_second["connection states"] if name == "request units" else 0
        assert _capacities(after)[name] >= capacity * (1 - 1e-9) - allowance, name


@given(LOADS)
def test_partitions_suffice(load: Load) -> None:
    """The readers of all partitions process the load with headroom, and one partition less would not suffice."""
    hubs = size_deployment(load).event_hubs
    needed = facts.HEADROOM * load.messages_each
    assert hubs.partitions * compute_partition_rate(load.connections_each, hubs.partitions) >= needed * (1 - 1e-9)


@given(LOADS)
def test_every_quantity_has_a_meter(load: Load) -> None:
    """Each quantity is positive, finite and belongs to a known meter."""
    for meter, quantity in calculate_quantities(size_deployment(load)).items():
        assert meter in METERS
        assert 0 < quantity < float("inf")


@given(st.integers(1, 100))
def test_equal_deployments_have_equal_sizes(count: int) -> None:
    """Twice the load on twice the deployments has the same sizes and twice the quantities."""
    one = Load(listeners=10, messages_per_second=100.0, audit_events_per_second=1.0)
    shared = ("connections", "messages_per_second", "listeners", "http_requests_per_second", "audit_events_per_second")
    totals = (*shared, "audit_scopes", "log_gb_per_day")
    many = replace(one, deployments=count, **{name: getattr(one, name) * count for name in totals})
    assert _capacities(size_deployment(many)) == pytest.approx(_capacities(size_deployment(one)))
    quantities = calculate_quantities(size_deployment(one))
    assert calculate_quantities(size_deployment(many)) == pytest.approx(
        {name: count * each for name, each in quantities.items()}
    )


def test_published_request_units() -> None:
    """Writes cost 5 and 50 RU for 1 KB and 100 KB, reads under bounded staleness 2 and 20."""
    assert [compute_write_ru(1), compute_write_ru(100), compute_read_ru(1), compute_read_ru(100)] == [5, 50, 2, 20]


@pytest.mark.parametrize(
    ("limit", "load"),
    [
        ("event-hubs-units", Load(messages_per_second=20_000.0, connections=400)),
        ("event-hubs-premium", Load(messages_per_second=500_000.0, connections=1_000)),
        ("event-hubs-partitions", Load(messages_per_second=15_000.0, connections=9_000)),
        ("connection-partition", Load(busiest_connection_messages_per_second=5_000.0)),
        ("connection-live", Load(busiest_connection_messages_per_second=300.0, listeners=1)),
        ("catalog", Load(connections=10_001)),
        ("chain-appends", Load(audit_events_per_second=3_000.0)),
        ("chain-verify", Load(audit_events_per_second=1.0)),
        ("cosmos-serverless", Load(audit_events_per_second=1_000.0, production=False)),
        ("streaming-ingestion", Load(messages_per_second=5_000.0)),
        ("archive-listing", Load(connections=9_000)),
        ("web-pubsub-units", Load(listeners=90_000)),
        ("instances", Load(http_requests_per_second=50_000.0)),
        ("memory-quota", Load(http_requests_per_second=50_000.0)),
    ],
)
def test_an_exceeded_limit_has_a_remedy(limit: str, load: Load) -> None:
    """Each limit of the design is reported by name with a remedy; docs/how-to/size-a-deployment.md has a row for it."""
    found = {each.name: each for each in find_exceeded_limits(size_deployment(load))}
    assert limit in found
    assert found[limit].remedy
    assert f"| `{limit}` |" in PAGE.read_text(encoding="utf-8")
    # The defaults exceed only the limit of long chains, so the load above exceeds this one.
    assert limit not in {
        each.name for each in find_exceeded_limits(size_deployment(Load(audit_events_per_second=0.001)))
    }


def test_the_timer_ticks_less_often_without_simulators() -> None:
    """Without simulators the timer ticks every five seconds, and costs a fifth of the executions."""
    without, with_simulators = (size_deployment(Load(simulators=each, listeners=1)) for each in (False, True))
    assert (without.background.tick_seconds, with_simulators.background.tick_seconds) == (5, 1)
    assert "simulators" not in without.background.runs_per_month
    ticks = [sizes.functions["background"].executions_per_second for sizes in (without, with_simulators)]
    assert ticks == [0.2, 1]


def _default(name: str, text: str) -> str:
    found = re.search(rf"^param {name} \w+ = (.+)$", text, re.MULTILINE)
    assert found, name
    return found[1]


def test_facts_repeat_the_templates() -> None:
    """Numbers that repeat a default of the templates or of host.json are equal to it."""
    main_text = (BICEP / "main.bicep").read_text(encoding="utf-8")
    assert int(_default("hubPartitions", main_text)) == facts.LEAST_PARTITIONS
    assert int(_default("maximumInstances", main_text)) == facts.DEFAULT_INSTANCES
    assert int(_default("httpConcurrency", main_text)) == facts.HTTP_CONCURRENCY
    assert int(_default("archiveCoolAfterDays", main_text)) == facts.HOT_ARCHIVE_DAYS
    assert int(_default("instanceMemoryMb", main_text)) == Load().instance_memory_mb
    assert int(_default("telemetryHotDays", main_text)) == Load().hot_days
    assert int(_default("telemetryRetentionDays", main_text)) == Load().retention_days
    host = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))
    assert host["extensions"]["eventHubs"]["maxEventBatchSize"] == facts.BATCH_EVENTS
    production = (BICEP / "prod.bicepparam").read_text(encoding="utf-8")
    ready = re.findall(r"\{ name: '(?:function:)?(\w+)', instanceCount: (\d+) \}", production)
    # With zone redundancy Azure adds two instances of each function that is not listed.
    assert {name: int(count) for name, count in ready} | {"background": 2} == facts.ALWAYS_READY


def _price_file(folder: Path, change: Callable[[dict[str, object]], None]) -> Path:
    prices: dict[str, object] = dict.fromkeys(METERS, 2)
    change(prices)
    path = folder / "prices.yaml"
    path.write_text(yaml.safe_dump({"currency": "EUR", "prices": prices}), encoding="utf-8")
    return path


def test_costs_are_quantities_times_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The total cost is the sum of each quantity times its price."""
    path = _price_file(tmp_path, lambda _: None)
    assert main(["--example", "plant", "--prices", str(path), "--json"]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert reply["costs"]["total"] == pytest.approx(2 * sum(reply["quantities"].values()))
    assert main(["--example", "plant", "--prices", str(path)]) == 0
    assert f"Cost of a month: {reply['costs']['total']:,.2f} EUR" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda prices: prices.pop("log_analytics_gb"), "the price of meter `log_analytics_gb` is missing"),
        (lambda prices: prices.update(log_analytics_gb=None), "the price of meter `log_analytics_gb` is missing"),
        (lambda prices: prices.update(unicorns=1), "meter `unicorns` is unknown"),
        (lambda prices: prices.update(log_analytics_gb=-1), "meter `log_analytics_gb` must be a number of at least 0"),
        (
            lambda prices: prices.update(log_analytics_gb=True),
            "meter `log_analytics_gb` must be a number of at least 0",
        ),
        (lambda prices: prices.update(log_analytics_gb="1"), "meter `log_analytics_gb` must be a number of at least 0"),
    ],
)
def test_wrong_prices_are_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, object]], None],
    message: str,
) -> None:
    """A missing, unknown or invalid price is rejected with the meter's name, and no cost is printed."""
    assert main(["--prices", str(_price_file(tmp_path, change))]) == WRONG_OPTIONS
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("text", ["", "[]", "prices: {}", "currency: EUR\nprices: []", "currency: 1\nprices: {}", "{"])
def test_wrong_price_files_are_rejected(tmp_path: Path, text: str) -> None:
    """A file with another structure is rejected with the name of the invalid field."""
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_prices(path, ())


def test_the_price_sample_is_complete() -> None:
    """samples/prices.example.yaml has every meter with its page, without prices."""
    text = PRICES.read_text(encoding="utf-8")
    prices = yaml.safe_load(text)["prices"]
    assert prices == dict.fromkeys(METERS)
    for name, meter in METERS.items():
        assert f"{name}: null  # {meter.unit}" in text
        assert f"# {meter.page}" in text


@pytest.mark.parametrize("name", [field.name for field in fields(Load) if field.type != "bool"])
@pytest.mark.parametrize("value", [-1, MAX_VALUE + 1])
def test_values_out_of_range_are_named(name: str, value: int) -> None:
    """A load out of range is rejected with the name of its field."""
    changed: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=f"`{name}`"):
        replace(Load(), **changed)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--batch-seconds", "0"], "batch_seconds"),
        (["--example", "line", "--regions", "2"], "regions"),
        (["--instance-memory-mb", "1024"], "instance_memory_mb"),
    ],
)
def test_impossible_values_are_named(arguments: list[str], field: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An impossible value is rejected with the name of its field."""
    assert main(arguments) == WRONG_OPTIONS
    assert f"`{field}`" in capsys.readouterr().err


def test_the_command_names_a_wrong_value(capsys: pytest.CaptureFixture[str]) -> None:
    """The command rejects a value out of range, including not-a-number, and an unknown option."""
    assert main(["--messages-per-second", "nan"]) == WRONG_OPTIONS
    assert "`messages_per_second`" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["--unicorns", "1"])


def _commands() -> list[tuple[str, str]]:
    """Return each command of docs/how-to/size-a-deployment.md with its output on the page."""
    blocks = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [(command, output) for command, output in blocks]


@pytest.mark.parametrize(("command", "output"), _commands(), ids=lambda text: text[:70])
def test_the_page_shows_what_the_command_prints(command: str, output: str) -> None:
    """Every command of docs/how-to/size-a-deployment.md runs, and prints the lines of the page in their order."""
    arguments = shlex.split(command)
    assert arguments[0] == ".venv/bin/python"
    done = subprocess.run(
        [sys.executable, *arguments[1:]], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    shown = "".join(".*\n" if line.strip() == "…" else f"{re.escape(line)}\n" for line in output.splitlines())
    assert re.fullmatch(shown, done.stdout, re.DOTALL), f"{command} prints\n{done.stdout}"


def test_the_page_shows_every_example() -> None:
    """docs/how-to/size-a-deployment.md shows the output of each example."""
    commands = " ".join(command for command, _ in _commands())
    assert all(f"--example {name}" in commands for name in EXAMPLES)


def test_the_page_shows_the_timer_of_the_settings() -> None:
    """docs/how-to/size-a-deployment.md has a row for each background job with its schedule and its monthly runs."""
    text = PAGE.read_text(encoding="utf-8")
    runs = size_deployment(Load(simulators=True, listeners=1)).background.runs_per_month
    schedules = {
        "simulators": Settings.read({}).simulator_schedule,
        "live-streams": Settings.read({}).live_schedule,
        "oauth-grants": GRANTS_SCHEDULE,
        "checkpoints": Settings.read({}).checkpoint_schedule,
        "audit-overview": Settings.read({}).audit_overview_schedule,
        "verification": Settings.read({}).verify_schedule,
        "compaction": Settings.read({}).compaction_schedule,
        "download-expiry": Settings.read({}).download_expiry_schedule,
    }
    assert set(runs) == set(schedules)
    for job, schedule in schedules.items():
        assert f"| `{job}` | `{schedule}` | {runs[job]:,.0f} |" in text
