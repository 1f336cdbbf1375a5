"""Meters (quantities that Azure bills), and the price file in which operators state their prices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Final

import yaml

_PAGES: Final = "https://azure.microsoft.com/pricing/details/"


@dataclass(frozen=True, slots=True)
class Meter:
    """Quantity that Azure bills.

    Attributes:
        unit: unit to which the price applies.
        page: URL of Azure's page with the price.
    """

    unit: str
    page: str


METERS: Final[Mapping[str, Meter]] = {
    "functions_million_executions": Meter("million executions", f"{_PAGES}functions/"),
    "functions_on_demand_gb_second": Meter("GB-second of on-demand execution", f"{_PAGES}functions/"),
    "functions_always_ready_gb_second": Meter("GB-second of an always ready instance", f"{_PAGES}functions/"),
    "functions_always_ready_execution_gb_second": Meter(
        "GB-second of execution on an always ready instance", f"{_PAGES}functions/"
    ),
    "event_hubs_throughput_unit_hour": Meter("hour of a Standard throughput unit", f"{_PAGES}event-hubs/"),
    "event_hubs_million_events": Meter("million ingress events of up to 64 KB", f"{_PAGES}event-hubs/"),
    "event_hubs_processing_unit_hour": Meter("hour of a Premium processing unit", f"{_PAGES}event-hubs/"),
    "cosmos_autoscale_100_ru_hour": Meter(
        "hour of 100 RU/s with autoscale", f"{_PAGES}cosmos-db/autoscale-provisioned/"
    ),
    "cosmos_serverless_million_ru": Meter("million request units, serverless", f"{_PAGES}cosmos-db/serverless/"),
    "cosmos_gb_month": Meter("GB-month of transactional storage", f"{_PAGES}cosmos-db/autoscale-provisioned/"),
    "data_explorer_dev_machine_hour": Meter("hour of a machine Dev(No SLA)_Standard_E2a_v4", f"{_PAGES}data-explorer/"),
    "data_explorer_e2ads_v5_machine_hour": Meter("hour of a machine Standard_E2ads_v5", f"{_PAGES}data-explorer/"),
    "data_explorer_e4ads_v5_machine_hour": Meter("hour of a machine Standard_E4ads_v5", f"{_PAGES}data-explorer/"),
    "data_explorer_e8ads_v5_machine_hour": Meter("hour of a machine Standard_E8ads_v5", f"{_PAGES}data-explorer/"),
    "data_explorer_e16ads_v5_machine_hour": Meter("hour of a machine Standard_E16ads_v5", f"{_PAGES}data-explorer/"),
    "data_explorer_markup_core_hour": Meter("hour of the markup for a core", f"{_PAGES}data-explorer/"),
    "data_explorer_gb_month": Meter("GB-month of the cluster's storage", f"{_PAGES}storage/blobs/"),
    "blob_hot_gb_month": Meter("GB-month in the hot tier", f"{_PAGES}storage/blobs/"),
    "blob_cool_gb_month": Meter("GB-month in the cool tier", f"{_PAGES}storage/blobs/"),
    "blob_10000_writes": Meter("10,000 write operations, hot tier", f"{_PAGES}storage/blobs/"),
    "blob_10000_lists": Meter("10,000 list operations, hot tier", f"{_PAGES}storage/blobs/"),
    "web_pubsub_unit_day": Meter("day of a Standard unit", f"{_PAGES}web-pubsub/"),
    "web_pubsub_million_messages": Meter("million messages beyond the included ones", f"{_PAGES}web-pubsub/"),
    "key_vault_10000_operations": Meter("10,000 signatures with an ECC key", f"{_PAGES}key-vault/"),
    "log_analytics_gb": Meter("GB taken in by Log Analytics", f"{_PAGES}monitor/"),
}


def read_currency_and_prices(path: Path, needed_meters: Iterable[str]) -> tuple[str, dict[str, float]]:
    """Read the currency and the prices from a price file.

    Args:
        path: YAML file with ``currency`` and ``prices``, see ``samples/prices.example.yaml``.
        needed_meters: names of the meters whose prices the file must contain; other prices may be null.

    Returns:
        The currency, and the required prices by meter.

    Raises:
        ValueError: fields or meters are unknown, missing or invalid; the message names them.
        OSError: the file cannot be read.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a YAML file: {error}") from None
    if not isinstance(content, dict) or set(content) != {"currency", "prices"}:
        raise ValueError(f"{path} must have the fields `currency` and `prices` and no other.")
    currency, prices = content["currency"], content["prices"]
    if not isinstance(currency, str) or not currency:
        raise ValueError(f"{path}: field `currency` must be a text, such as EUR.")
    if not isinstance(prices, dict):
        raise ValueError(f"{path}: field `prices` must be a mapping of meters to prices.")  # noqa: TRY004  wrong content
    problems = [f"meter `{name}` is unknown" for name in prices if name not in METERS]
    problems += [
        f"the price of meter `{name}` must be a number of at least 0"
        for name, price in prices.items()
        if price is not None and not _is_price(price)
    ]
    problems += [
        f"the price of meter `{name}` is missing (unit: {METERS[name].unit}); look it up on {METERS[name].page}"
        for name in needed_meters
        if prices.get(name) is None
    ]
    if problems:
        raise ValueError("\n".join(f"{path}: {problem}." for problem in problems))
    return currency, {name: float(prices[name]) for name in needed_meters}


def _is_price(value: object) -> bool:
    # YAML's true would count as 1.
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0
