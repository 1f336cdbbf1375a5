"""The containers of the templates are those of the code."""

from scripts.cosmos_containers import build_containers


def test_each_container_has_one_partition_key() -> None:
    """Names are unique, and a property that is absent has the default of Azure."""
    containers = build_containers()
    assert len({each["id"] for each in containers}) == len(containers)
    assert {len(each["partitionKey"]["paths"]) for each in containers} == {1}
    assert all(each.get("defaultTtl", 1) != 0 for each in containers)
