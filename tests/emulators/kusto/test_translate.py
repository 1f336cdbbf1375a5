"""Tests that replies list the functions whose results can differ from those of Data Explorer."""

import json

import httpx
import pytest

from tests.emulators.kusto.endpoints import Endpoint
from tests.plain_http import NO_TLS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("print series_periods_detect(dynamic([1]), 0, 9, 1)", ["series_periods_detect (approximate)"]),
        (
            "Telemetry | take 5 | reduce by DeviceId | extend s = series_outliers(dynamic([1]))",
            ["reduce (approximate)", "series_outliers (approximate with other percentiles than 10 and 90)"],
        ),
        ("Telemetry | project DeviceId | evaluate basket()", ["basket (approximate order)"]),
        ("print basket = 1, reduce = 'series_seasonal(x)' // series_seasonal(x)\n| project basket", None),
    ],
)
def test_the_reply_lists_functions_with_approximate_results(
    endpoint: Endpoint, text: str, expected: list[str] | None
) -> None:
    """A reply lists the functions in the query whose results are approximate, and no other functions."""
    body = {"db": "Telemetry", "csl": text}
    reply = httpx.post(f"{endpoint.url}/v2/rest/query", json=body, timeout=60, verify=NO_TLS).raise_for_status()
    properties = {key: value for _, key, value in reply.json()[1]["Rows"]}
    assert properties.get("Approximations") == (
        None if expected is None else json.dumps(expected, separators=(",", ":"))
    )
