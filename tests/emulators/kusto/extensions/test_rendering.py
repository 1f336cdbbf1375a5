"""Tests of the operator ``render``."""

import json
from typing import Any

import httpx
import pytest

from tests.emulators.kusto.endpoints import Endpoint
from tests.plain_http import NO_TLS


def read_annotation(endpoint: Endpoint, text: str) -> dict[str, Any]:
    """Return the annotation Visualization of a query's result."""
    body = {"db": "Telemetry", "csl": text}
    frames = httpx.post(f"{endpoint.url}/v2/rest/query", json=body, timeout=60, verify=NO_TLS).raise_for_status().json()
    annotation: dict[str, Any] = json.loads(frames[1]["Rows"][0][2])
    return annotation


@pytest.mark.parametrize(
    ("operator", "properties"),
    [
        ("render timechart", {"Visualization": "timechart", "YColumns": None, "Accumulate": False, "Ymin": "NaN"}),
        (
            'render anomalychart with (title="a b", xcolumn=t, ycolumns=v, anomalycolumns=["v w"], ymin=-1.5)',
            {"Visualization": "anomalychart", "Title": "a b", "XColumn": "t", "YColumns": ["v"],
             "AnomalyColumns": ["v w"], "Ymin": -1.5},
        ),
        ("render columnchart kind=stacked", {"Visualization": "columnchart", "Kind": "stacked"}),
        ("render linechart with (series=t, v, accumulate=true)", {"Series": ["t", "v"], "Accumulate": True}),
        ("render table | take 1", {"Visualization": "table"}),
        ("take 1", {"Visualization": None, "Title": None}),
    ],
)  # fmt: skip
def test_the_result_has_the_visualization_of_render(
    endpoint: Endpoint, operator: str, properties: dict[str, Any]
) -> None:
    """The result's annotation Visualization contains the properties of ``render``."""
    annotation = read_annotation(endpoint, f'print t = now(), v = 1, ["v w"] = 2 | {operator}')
    assert {name: annotation[name] for name in properties} == properties
    assert len(annotation) == 19


@pytest.mark.parametrize(
    "operator",
    [
        "render nochart",
        "render timechart with (ycolumns=nope)",
        "render timechart with (xcolumn=nope)",
        "render timechart with (kind=stacked, kind=stacked)",
        "render timechart with (title=1)",
        "render timechart with (other=1)",
    ],
)
def test_an_invalid_render_property_is_rejected(endpoint: Endpoint, operator: str) -> None:
    """An unknown visualization, property or column, or a repeated property, of ``render`` is rejected."""
    assert endpoint.query_error_code(f"print t = 1 | {operator}") in ("General_BadRequest", "BadRequest_SyntaxError")
