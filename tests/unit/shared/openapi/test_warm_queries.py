"""Tests of operations of approved queries: parameters and rows with the types of their columns."""

from functions import GROUPS
from shared.openapi.operations import build_operation
from shared.openapi.schemas import SchemaRegistry
from shared.openapi.warm_queries import register_query_summary

[EXECUTE] = [one for group in GROUPS for one in group.operations if one.name == "execute_warm_query"]


def test_summary_has_all_members_but_the_rows() -> None:
    """The summary schema has all members except the rows, because client generators merge equal members differently."""
    schemas = SchemaRegistry()
    build_operation(EXECUTE, schemas)
    register_query_summary(schemas)
    answer, summary = schemas.named["QueryAnswer"], schemas.named["QuerySummary"]
    assert set(answer["properties"]) - set(summary["properties"]) == {"results"}
    assert set(answer["required"]) - set(summary["required"]) == {"results"}
