"""Tests of the ETags of stored definitions."""

from shared.catalog.etags import compute_definition_etag


def test_the_order_of_members_does_not_change_the_etag() -> None:
    """Definitions with equal properties, in any order, have the same strong ETag."""
    etag = compute_definition_etag({"name": "Hall", "connections": ["a"]})
    assert etag == compute_definition_etag({"connections": ["a"], "name": "Hall"})
    assert (etag[0], etag[-1], len(etag)) == ('"', '"', 66)


def test_different_definitions_have_different_etags() -> None:
    """ETags differ if a value or property differs, or if the same text is divided into definitions differently."""
    definitions: list[list[dict[str, object]]] = [[{"a": 1}], [{"a": 2}], [{"a": 1, "b": 2}], [{"a": 1}, {"b": 2}], []]
    assert len({compute_definition_etag(*one) for one in definitions}) == len(definitions)
