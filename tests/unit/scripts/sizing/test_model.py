"""Tests of the formulas of the sizing model."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.sizing import facts
from scripts.sizing.load import MAX_VALUE, Load
from scripts.sizing.model import Sizes, calculate_monthly_quantities, compute_deployment_sizes
from scripts.sizing.prices import METERS
from scripts.sizing.services import compute_partition_reader_messages_per_second

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


def _compute_capacities(sizes: Sizes) -> dict[str, float]:
    """Return those sizes of a deployment that must not shrink when its load grows, by name."""
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


@given(LOADS, st.sampled_from(GROWING), st.floats(1, 10))
def test_a_larger_load_never_needs_a_smaller_deployment(load: Load, field: str, factor: float) -> None:
    """If a part of the load grows, no size shrinks, except the request units for the states of connections."""
    grown = getattr(load, field) * factor
    larger = replace(load, **{field: type(getattr(load, field))(min(grown, MAX_VALUE))})
    before, after = compute_deployment_sizes(load), compute_deployment_sizes(larger)
    for name, capacity in _compute_capacities(before).items():
        allowance = before.cosmos.ru_per_second["connection states"] if name == "request units" else 0
        assert _compute_capacities(after)[name] >= capacity * (1 - 1e-9) - allowance, name


@given(LOADS)
def test_partitions_can_process_the_load(load: Load) -> None:
    """The computed number of partitions can process the load with a reserve; one partition less cannot."""
    hubs = compute_deployment_sizes(load).event_hubs
    needed = facts.HEADROOM * load.messages_per_second_per_deployment
    assert hubs.partitions * compute_partition_reader_messages_per_second(
        load.connections_per_deployment, hubs.partitions
    ) >= needed * (1 - 1e-9)


@given(LOADS)
def test_every_partition_can_send_at_the_same_time(load: Load) -> None:
    """The instances of ``ingest`` together can send as many batches at the same time as there are partitions."""
    sizes = compute_deployment_sizes(load)
    assert sizes.functions["ingest"].instances * facts.SENDS_AT_ONCE >= sizes.event_hubs.partitions


@given(LOADS)
def test_every_computed_quantity_has_a_meter(load: Load) -> None:
    """Each quantity is positive and finite and belongs to a known meter."""
    for meter, quantity in calculate_monthly_quantities(compute_deployment_sizes(load)).items():
        assert meter in METERS
        assert 0 < quantity < float("inf")


@given(st.integers(1, 100))
def test_equal_deployments_have_equal_sizes(count: int) -> None:
    """If a load is divided among several deployments, each has the sizes for its share, and quantities are added."""
    one = Load(listeners=10, messages_per_second=100.0, audit_events_per_second=1.0)
    shared = ("connections", "messages_per_second", "listeners", "http_requests_per_second", "audit_events_per_second")
    totals = (*shared, "audit_scopes", "log_gb_per_day")
    many = replace(one, deployments=count, **{name: getattr(one, name) * count for name in totals})
    assert _compute_capacities(compute_deployment_sizes(many)) == pytest.approx(
        _compute_capacities(compute_deployment_sizes(one))
    )
    quantities = calculate_monthly_quantities(compute_deployment_sizes(one))
    assert calculate_monthly_quantities(compute_deployment_sizes(many)) == pytest.approx(
        {name: count * each for name, each in quantities.items()}
    )


@given(LOADS)
def test_a_deployment_without_listeners_has_the_services_of_the_templates(load: Load) -> None:
    """The templates create a unit of Web PubSub and start the function ``live`` also if nobody listens."""
    sizes = compute_deployment_sizes(replace(load, listeners=0, production=True))
    assert (sizes.live_stream.units, sizes.live_stream.messages_in_per_second) == (1, 0)
    assert set(sizes.functions) == set(facts.ALWAYS_READY)
    gb_seconds = load.instance_memory_mb / 1024 * facts.SECONDS_PER_MONTH * load.deployments
    ready = calculate_monthly_quantities(sizes)["functions_always_ready_gb_second"]
    assert ready == pytest.approx(sum(facts.ALWAYS_READY.values()) * gb_seconds)


def test_the_timer_runs_less_often_without_simulators() -> None:
    """Without simulators, the timer runs every five seconds instead of every second."""
    without, with_simulators = (compute_deployment_sizes(Load(simulators=each, listeners=1)) for each in (False, True))
    assert (without.background.tick_seconds, with_simulators.background.tick_seconds) == (5, 1)
    assert "simulators" not in without.background.runs_per_month
    ticks = [sizes.functions["background"].executions_per_second for sizes in (without, with_simulators)]
    assert ticks == [0.2, 1]
