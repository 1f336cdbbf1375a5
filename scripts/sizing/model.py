"""Sizing model of a deployment: sizes of its Azure services, monthly quantities, costs and exceeded limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from scripts.sizing import facts, limits
from scripts.sizing.load import Load
from scripts.sizing.services import (
    ArchiveSize,
    BackgroundLoad,
    CosmosDbSize,
    DataExplorerSize,
    EventHubsSize,
    LiveStreamSize,
    ScalingGroup,
    compute_archive_size,
    compute_background_load,
    compute_cosmos_size,
    compute_data_explorer_size,
    compute_event_hubs_size,
    compute_function_sizes,
    compute_live_stream_size,
)

MB_PER_GB = 1_024
MILLION = 1_000_000
TEN_THOUSAND = 10_000
SIGNATURES_PER_CHECKPOINT = 2


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the Azure services of one deployment.

    Attributes:
        load: total load of all deployments, from which the sizes are computed.
        event_hubs: size of the Event Hubs namespace.
        functions: sizes of the groups of functions that scale together, by name.
        background: load that the background timer causes.
        cosmos: size of the Cosmos DB account.
        data_explorer: size of the Data Explorer cluster.
        archive: size of the cold archive.
        live_stream: size of Web PubSub.
    """

    load: Load
    event_hubs: EventHubsSize
    functions: dict[str, ScalingGroup]
    background: BackgroundLoad
    cosmos: CosmosDbSize
    data_explorer: DataExplorerSize
    archive: ArchiveSize
    live_stream: LiveStreamSize


def compute_deployment_sizes(load: Load) -> Sizes:
    """Compute the sizes of the services of one deployment; each deployment processes an equal part of the load."""
    hubs, background = compute_event_hubs_size(load), compute_background_load(load)
    return Sizes(
        load,
        hubs,
        compute_function_sizes(load, hubs, background),
        background,
        compute_cosmos_size(load, hubs, background),
        compute_data_explorer_size(load),
        compute_archive_size(load, hubs, background),
        compute_live_stream_size(load),
    )


def find_exceeded_limits(sizes: Sizes) -> list[limits.ExceededLimit]:
    """Return the limits, of Azure services or of this service, that the load of a deployment exceeds."""
    compaction_seconds = facts.SECONDS_PER_MONTH / sizes.background.runs_per_month["compaction"]
    return [
        *limits.iterate_exceeded_hub_limits(sizes.event_hubs),
        *limits.iterate_exceeded_connection_limits(sizes.load),
        *limits.iterate_exceeded_cosmos_limits(sizes.load, sizes.cosmos),
        *limits.iterate_exceeded_table_and_archive_limits(sizes.data_explorer, sizes.archive, compaction_seconds),
        *limits.iterate_exceeded_live_stream_limits(sizes.live_stream),
        *limits.iterate_exceeded_instance_limits(sizes.load, sizes.functions),
    ]


def calculate_monthly_quantities(sizes: Sizes) -> dict[str, float]:
    """Return the quantities that Azure bills per month for all deployments, by meter; unused meters are omitted.

    Free quantities are not subtracted, except the messages that each unit of Web PubSub includes.
    """
    each = (
        _calculate_monthly_functions_quantities(sizes)
        | _calculate_monthly_event_hubs_quantities(sizes.event_hubs)
        | _calculate_monthly_cosmos_quantities(sizes)
        | _calculate_monthly_data_explorer_quantities(sizes)
        | _calculate_monthly_archive_quantities(sizes.archive)
        | _calculate_monthly_live_stream_quantities(sizes.live_stream)
        | _calculate_monthly_key_vault_quantities(sizes)
    )
    quantities = {meter: quantity * sizes.load.deployments for meter, quantity in each.items()}
    quantities["log_analytics_gb"] = sizes.load.log_gb_per_day * facts.DAYS_PER_MONTH
    return {meter: quantity for meter, quantity in quantities.items() if quantity > 0}


def _calculate_monthly_functions_quantities(sizes: Sizes) -> dict[str, float]:
    """Return the executions and GB-seconds of functions.

    The GB-seconds are split between always-ready and on-demand instances, because their prices differ.
    """
    ready = facts.ALWAYS_READY if sizes.load.production else {}
    gb_seconds = sizes.load.instance_memory_mb / MB_PER_GB * facts.SECONDS_PER_MONTH
    ready_billed = sum(
        min(group.billed_seconds_per_second, ready.get(name, 0)) for name, group in sizes.functions.items()
    )
    billed = sum(group.billed_seconds_per_second for group in sizes.functions.values())
    executions = sum(group.executions_per_second for group in sizes.functions.values())
    return {
        "functions_million_executions": executions * facts.SECONDS_PER_MONTH / MILLION,
        "functions_on_demand_gb_second": (billed - ready_billed) * gb_seconds,
        "functions_always_ready_gb_second": sum(ready[name] for name in sizes.functions if name in ready) * gb_seconds,
        "functions_always_ready_execution_gb_second": ready_billed * gb_seconds,
    }


def _calculate_monthly_event_hubs_quantities(hubs: EventHubsSize) -> dict[str, float]:
    # The Premium tier bills no events.
    if hubs.processing_units:
        return {"event_hubs_processing_unit_hour": float(hubs.processing_units * facts.HOURS_PER_MONTH)}
    return {
        "event_hubs_throughput_unit_hour": float(hubs.throughput_units * facts.HOURS_PER_MONTH),
        "event_hubs_million_events": hubs.billed_events_per_second * facts.SECONDS_PER_MONTH / MILLION,
    }


def _calculate_monthly_cosmos_quantities(sizes: Sizes) -> dict[str, float]:
    cosmos, regions = sizes.cosmos, sizes.load.regions
    stored = {"cosmos_gb_month": cosmos.stored_gb * regions}
    if not sizes.load.production:
        ru = cosmos.total_ru_per_second * facts.SECONDS_PER_MONTH * regions
        return stored | {"cosmos_serverless_million_ru": ru / MILLION}
    # Autoscale bills the highest RU/s of each hour, a tenth of the maximum at least.
    billed = max(cosmos.total_ru_per_second, facts.AUTOSCALE_LEAST_SHARE * cosmos.autoscale_max_ru_per_second)
    hours = ceil(billed / facts.BILLED_RU_PER_SECOND) * facts.HOURS_PER_MONTH * regions
    return stored | {"cosmos_autoscale_100_ru_hour": float(hours)}


def _calculate_monthly_data_explorer_quantities(sizes: Sizes) -> dict[str, float]:
    explorer = sizes.data_explorer
    hours = float(explorer.machines * facts.HOURS_PER_MONTH)
    # The cluster without a service level has no markup.
    markup = 0.0 if explorer.machine == "dev" else float(explorer.cores * facts.HOURS_PER_MONTH)
    return {
        f"data_explorer_{explorer.machine}_machine_hour": hours,
        "data_explorer_markup_core_hour": markup,
        "data_explorer_gb_month": explorer.stored_gb,
    }


def _calculate_monthly_archive_quantities(archive: ArchiveSize) -> dict[str, float]:
    return {
        "blob_hot_gb_month": archive.hot_gb,
        "blob_cool_gb_month": archive.gb - archive.hot_gb,
        "blob_10000_writes": archive.writes_per_second * facts.SECONDS_PER_MONTH / TEN_THOUSAND,
        "blob_10000_lists": archive.lists_per_month / TEN_THOUSAND,
    }


def _calculate_monthly_live_stream_quantities(live: LiveStreamSize) -> dict[str, float]:
    return {
        "web_pubsub_unit_day": live.units * facts.DAYS_PER_MONTH,
        "web_pubsub_million_messages": live.billed_messages_per_month / MILLION,
    }


def _calculate_monthly_key_vault_quantities(sizes: Sizes) -> dict[str, float]:
    """Return the number of signatures that Key Vault computes per month for checkpoints, in units of 10,000.

    Each run of the job ``checkpoints`` signs one checkpoint for each chain that has grown since the previous run. A
    checkpoint has two signatures: one over its text, and one over its root, for receipts.
    """
    runs = sizes.background.runs_per_month["checkpoints"]
    grown = min(
        float(sizes.load.scopes_per_deployment),
        sizes.load.audit_records_per_second_per_deployment * facts.SECONDS_PER_MONTH / runs,
    )
    return {"key_vault_10000_operations": runs * grown * SIGNATURES_PER_CHECKPOINT / TEN_THOUSAND}


def calculate_monthly_costs(quantities: Mapping[str, float], prices: Mapping[str, float]) -> dict[str, float]:
    """Return the monthly cost by meter: quantity times price."""
    return {meter: quantity * prices[meter] for meter, quantity in quantities.items()}
