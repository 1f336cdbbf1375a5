"""Tests of the containers that the templates create in Cosmos DB."""

from scripts.cosmos_containers import build_container_definitions


def test_each_container_has_one_partition_key() -> None:
    """Container names are unique, each container has one partition key, and omitted properties have the defaults."""
    containers = build_container_definitions()
    assert len({each["id"] for each in containers}) == len(containers)
    assert {len(each["partitionKey"]["paths"]) for each in containers} == {1}
    assert all(each.get("defaultTtl", 1) != 0 for each in containers)
