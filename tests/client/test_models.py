"""Tests that the models of the client equal those of the service's OpenAPI document."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints, is_typeddict

import pytest
from oi import models

from functions import GROUPS
from functions.lazy_groups import load_operations
from shared.openapi.document import build_openapi_document
from shared.openapi.schemas import SchemaRegistry
from tests.docs.recipes import explain_missing_programs
from tests.service.local_service import ROOT

REMEDY = "run: .venv/bin/python client/scripts/make_models.py"


@pytest.fixture(scope="module")
def schemas() -> Mapping[str, Any]:
    """Return the named schemas of an OpenAPI document with all operations."""
    operations = asyncio.run(load_operations(GROUPS))
    found: Mapping[str, Any] = build_openapi_document(operations, "Workspace", "", {}, SchemaRegistry())["components"][
        "schemas"
    ]
    return found


def test_each_schema_has_a_model_with_equal_fields(schemas: Mapping[str, Any]) -> None:
    """Each named schema has a model in ``oi.models`` with equal fields and equal required fields."""
    for name, schema in schemas.items():
        model = getattr(models, name, None)
        assert model is not None, f"{name} is missing; {REMEDY}"
        if "properties" in schema and is_typeddict(model):
            hints = get_type_hints(model, include_extras=True)
            required = {member for member, hint in hints.items() if get_origin(hint) is not NotRequired}
            assert set(schema["properties"]) == set(hints), f"{name} is stale; {REMEDY}"
            assert set(schema.get("required", ())) == required, f"{name} is stale; {REMEDY}"


@pytest.mark.skipif(bool(explain_missing_programs()), reason=explain_missing_programs())
def test_the_models_module_is_up_to_date() -> None:
    """The committed module ``oi.models`` equals the current output of the generator."""
    command: list[str | Path] = [sys.executable, ROOT / "client" / "scripts" / "make_models.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
