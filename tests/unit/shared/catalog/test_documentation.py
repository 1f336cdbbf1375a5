"""Tests that docs/reference/workspace-document.md matches the models."""

import re
from pathlib import Path

import pytest

from shared.catalog.document import load_document
from shared.catalog.models import WorkspaceDocument

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "workspace-document.md").read_text(encoding="utf-8")
SCHEMA = WorkspaceDocument.model_json_schema()
FIELDS = {name for model in (SCHEMA, *SCHEMA["$defs"].values()) for name in model.get("properties", {})}
KINDS = set(SCHEMA["$defs"]["Simulator"]["properties"]["variables"]["items"]["discriminator"]["mapping"])


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_each_field_of_the_document_is_described(field: str) -> None:
    """The page describes every field of the document."""
    assert re.search(rf"`([\w\[\].]+\.)?{re.escape(field)}(\[\])?`", PAGE)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_of_variable_is_documented(kind: str) -> None:
    """The table on the page has every kind of simulated variable."""
    assert re.search(rf"^\|.*`{kind}`.*\|", PAGE, re.MULTILINE)


def test_the_example_document_on_the_page_is_valid() -> None:
    """The example on the page is a valid document."""
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert load_document(example, "workspace-document.md").workspace.id == "plant-a"
