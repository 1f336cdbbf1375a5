"""docs/kql.md says what the engine does."""

import re
from collections.abc import Iterator

import httpx
import pytest

from scripts.kql_reference import TARGET, build_families, update_document
from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service

BLOCK = re.compile(r"^```(kql(?:-refused)?)\n(.*?)^```", re.MULTILINE | re.DOTALL)
REFUSALS = {"QUERY_INVALID", "QUERY_NOT_READ_ONLY"}


@pytest.fixture(scope="module")
def engineer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Return a caller that may run queries of its own."""
    running = Service(tmp_path_factory.mktemp("kql") / "data", WORKSPACE).start()
    yield running.caller("editor@t")
    running.stop()


def examples(kind: str) -> list[str]:
    """Return the examples of a kind."""
    return [text for found, text in BLOCK.findall(TARGET.read_text(encoding="utf-8")) if found == kind]


@pytest.mark.parametrize("kql", examples("kql"), ids=lambda text: text.split("\n")[0][:40])
def test_what_is_shown_runs(engineer: httpx.Client, kql: str) -> None:
    """Every example of the page is answered."""
    reply = engineer.post("/oi-api/warm-queries", json={"query": kql})
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("kql", examples("kql-refused"), ids=lambda text: text.split("\n")[0][:40])
def test_what_is_refused_is_refused_by_name(engineer: httpx.Client, kql: str) -> None:
    """Every refused example of the page is a 400 with the engine's reason."""
    reply = engineer.post("/oi-api/warm-queries", json={"query": kql})
    assert reply.status_code == 400
    assert reply.json()["code"] in REFUSALS


def test_every_family_is_listed() -> None:
    """The page's list of families is what the engine has."""
    document = TARGET.read_text(encoding="utf-8")
    assert update_document(document) == document, "run: .venv/bin/python -m scripts.kql_reference"
    assert build_families().count("\n") > 5
