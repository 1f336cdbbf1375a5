"""Contents of a Kusto reply besides its rows: partial failures, times, and the annotation of ``render``.

This module is separate from the adapter, because the form of replies changes with the engine, not with the queries.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from azure.kusto.data.exceptions import KustoMultiApiError, KustoServiceError
from azure.kusto.data.response import KustoResponseDataSet

from shared.catalog.kql_tokens import tokenize
from shared.errors import invalid
from shared.timestamps import parse_rfc3339

_VISUALIZATION = {
    "Visualization": "visualization", "Title": "title", "XColumn": "xColumn", "Series": "series",
    "YColumns": "yColumns", "AnomalyColumns": "anomalyColumns", "XTitle": "xTitle", "YTitle": "yTitle",
    "XAxis": "xAxis", "YAxis": "yAxis", "Legend": "legend", "YSplit": "ySplit", "Accumulate": "accumulate",
    "Kind": "kind", "Ymin": "yMin", "Ymax": "yMax", "Xmin": "xMin", "Xmax": "xMax",
}  # fmt: skip
"""Names in the API of the properties of ``render`` that the engine's annotation ``Visualization`` contains."""
_SEVERAL_RESULTS = frozenset({("|", "fork"), ("|", "facet"), ("evaluate", "preview"), ("evaluate", "funnel_sequence")})
"""Operators with several results: two tokens that follow each other."""
_NAME_LISTS = frozenset({"series", "yColumns", "anomalyColumns"})


def reject_partial(reply: KustoResponseDataSet, rows: list[Any]) -> None:
    """Check that a reply has all rows of the result.

    Raises:
        KustoServiceError: the engine reports failures among the rows or at the end of the reply.
    """
    failures = [row for row in rows if isinstance(row, dict)]
    if failures:
        raise KustoMultiApiError(failures)
    if reply.errors_count:
        raise KustoServiceError("; ".join(reply.get_exceptions()))


def reject_several_tables(reply: KustoResponseDataSet, text: str) -> None:
    """Check that a query has one result.

    Args:
        reply: reply of the engine.
        text: KQL text of the query.

    Raises:
        WorkspaceError: INVALID ``QUERY_INVALID``.
    """
    count = len(reply.primary_results)
    if count > 1:
        cause = _find_operator_with_results(text)
        rule = f"remove the operator {cause}" if cause else "send one statement at a time"
        detail = f"the query has {count} results; a query of the workspace must have one: {rule}"
        raise invalid("query", detail, code="QUERY_INVALID")


def _find_operator_with_results(text: str) -> str:
    """Return the first operator of a KQL text that has several results; empty if there is none."""
    previous = ""
    for token in tokenize(text):
        if (previous, token.text) in _SEVERAL_RESULTS:
            return token.text if previous == "|" else f"{previous} {token.text}"
        previous = token.text
    return ""


def parse_computed_at(reply: KustoResponseDataSet) -> datetime | None:
    """Parse the time at which the engine computed a result that it returned from its cache; None for a new result."""
    # The ExtendedProperties of a cached result state its origin: {"OriginalClientRequestId", "OriginalStartedOn"}.
    for cells in _read_cells(reply, "@ExtendedProperties"):
        if cells.get("Key") == "ServerCache":
            return parse_rfc3339(json.loads(cells["Value"])["OriginalStartedOn"])
    return None


def parse_visualization(reply: KustoResponseDataSet) -> dict[str, Any] | None:
    """Parse the properties of a query's operator ``render``, named as in the API; None without ``render``."""
    for cells in _read_cells(reply, "@ExtendedProperties"):
        if cells.get("Key") == "Visualization":
            value = cells["Value"]
            annotation = json.loads(value) if isinstance(value, str) else value
            if not isinstance(annotation, dict) or not annotation.get("Visualization"):
                return None
            return {name: _convert_annotation(name, annotation.get(key)) for key, name in _VISUALIZATION.items()}
    return None


def parse_approximations(reply: KustoResponseDataSet) -> tuple[str, ...]:
    """Parse the list of the query's functions whose results in the emulator differ from those of Data Explorer."""
    for cells in _read_cells(reply, "@ExtendedProperties"):
        if cells.get("Key") == "Approximations":
            return tuple(map(str, json.loads(cells["Value"])))
    return ()


def _convert_annotation(name: str, value: Any) -> Any:
    if name in _NAME_LISTS and isinstance(value, str):
        return [each.strip() for each in value.split(",") if each.strip()]
    return None if value in ("", "NaN") else value


def _read_cells(reply: KustoResponseDataSet, table_name: str) -> Iterator[dict[str, Any]]:
    for table in reply.tables:
        if table.table_name == table_name:
            names = [column.column_name for column in table.columns]
            yield from (dict(zip(names, row, strict=False)) for row in table.raw_rows)


def parse_engine_ms(reply: KustoResponseDataSet, elapsed_ms: float) -> float:
    """Parse the duration in milliseconds that the engine reports for a query; ``elapsed_ms`` if it reports none."""
    for cells in _read_cells(reply, "QueryCompletionInformation"):
        if cells.get("EventTypeName") == "QueryResourceConsumption":
            return float(json.loads(cells["Payload"]).get("ExecutionTime", elapsed_ms / 1000)) * 1000
    return elapsed_ms
