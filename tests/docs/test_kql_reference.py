"""Tests that docs/reference/kql.md matches the engine's behaviour."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from emulators.kusto.schema import COLUMNS
from scripts.kql_reference import TARGET, build_function_group_table, replace_generated_table
from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service

BLOCK = re.compile(r"^```(kql(?:-refused)?)\n(.*?)^```", re.MULTILINE | re.DOTALL)
REFUSALS = {"QUERY_INVALID", "QUERY_NOT_READ_ONLY"}


@pytest.fixture(scope="module")
def engineer_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Return a client with the right to run ad-hoc queries."""
    running = Service(tmp_path_factory.mktemp("kql") / "data", WORKSPACE).start()
    yield running.create_client("editor@t")
    running.stop()


def read_examples(label: str) -> list[str]:
    """Return the code blocks of the KQL reference whose language label is `kql` or `kql-refused`."""
    return [text for found, text in BLOCK.findall(TARGET.read_text(encoding="utf-8")) if found == label]


@pytest.mark.parametrize("kql", read_examples("kql"), ids=lambda text: text.split("\n")[0][:40])
def test_the_kql_examples_on_the_page_run(engineer_client: httpx.Client, kql: str) -> None:
    """Every example on the page runs."""
    reply = engineer_client.post("/oi-api/warm-queries", json={"query": kql})
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("kql", read_examples("kql-refused"), ids=lambda text: text.split("\n")[0][:40])
def test_rejected_examples_have_a_reason(engineer_client: httpx.Client, kql: str) -> None:
    """Every example that the page lists as rejected returns 400 with the engine's reason."""
    reply = engineer_client.post("/oi-api/warm-queries", json={"query": kql})
    assert reply.status_code == 400
    assert reply.json()["code"] in REFUSALS


def test_every_function_family_is_listed() -> None:
    """The page lists all function families of the engine."""
    document = TARGET.read_text(encoding="utf-8")
    assert replace_generated_table(document) == document, "run: .venv/bin/python -m scripts.kql_reference"
    assert build_function_group_table().count("\n") > 5


def test_the_page_has_the_column_order_of_both_engines() -> None:
    """The page has the order of the columns of Telemetry locally, and the order in the view in Data Explorer."""
    document = TARGET.read_text(encoding="utf-8")
    [declared] = re.findall(r"`Telemetry\((.*?)\)`", document, re.DOTALL)
    assert tuple(column.split(":")[0] for column in re.split(r",\s+", declared)) == COLUMNS
    view = (Path(__file__).parents[2] / "infra" / "bicep" / "telemetry.kql").read_text(encoding="utf-8")
    [(aggregated, grouping)] = re.findall(r"summarize take_any\((.*?)\) by (.*)", view)
    assert f"`{grouping}, {aggregated}`" in document
