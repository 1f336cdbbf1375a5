"""Tests of the documented schema of workspace documents."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from functions.reply_docs.workspace_document import PLANNED

SAMPLE = Path(__file__).parents[4] / "samples" / "workspace.yaml"
WORKSPACE = {"id": "plant-a", "name": "Plant A"}


def is_documented(document: dict[str, Any]) -> bool:
    """Return whether a workspace document follows the documented schema."""
    return bool(Draft202012Validator(PLANNED.body_schema or {}).is_valid(document))


def test_the_example_of_a_workspace_document_follows_its_schema() -> None:
    """The example of a workspace document follows the documented schema, also without a provenance policy."""
    assert is_documented(PLANNED.example)
    assert is_documented({"workspace": WORKSPACE, "policies": {"provenance": None, "telemetry": {}}})


@pytest.mark.parametrize(
    "invalid",
    [
        {"workspace": {}},
        {"policies": {"unknown": {}}},
        {"policies": {"telemetry": None}},
        {"limits": {}},
        {"team": [{"name": "Ann"}]},
        {"surfaces": [{"lookup": "hall", "name": "Hall", "unknown": 1}]},
        {"connections": [{"lookup": "rig"}]},
        {"surfaces": [{"lookup": "hall"}]},
        {"warmQueries": [{"lookup": "q", "name": "Q", "surface": "hall"}]},
        {"dataStores": [{}]},
        {"oauthClients": [{"id": "grafana", "name": "Grafana"}]},
    ],
)
def test_required_and_unknown_properties_of_workspace_documents_are_documented(invalid: dict[str, Any]) -> None:
    """The schema rejects items without a property that the service requires, and unknown properties and policies."""
    assert not is_documented({"workspace": WORKSPACE, **invalid})


def test_the_sample_document_follows_the_documented_schema() -> None:
    """The sample of a workspace document follows the documented schema."""
    assert is_documented(yaml.safe_load(SAMPLE.read_text("utf-8")))
