"""Tests of finding valid items in an invalid workspace document."""

from shared.catalog.document import load_document
from shared.catalog.sections import Sections
from tests.unit.shared.catalog.documents import PLANT

MEMBER = {"id": "a@x", "name": "A", "role": "Admin"}
DATA = {
    "workspace": {"id": "plant-a", "name": "Plant A"},
    "team": [MEMBER, {"id": "b@x"}],
    "surfaces": "none",
}


def test_a_valid_document_has_all_its_items() -> None:
    """The sections of a valid document contain all its items, with their indexes in the lists."""
    document = load_document(PLANT, "w.yaml")
    sections = Sections.from_document(document)
    assert [item for _, item in sections.team] == list(document.team)
    assert [index for index, _ in sections.connections] == [0, 1]
    assert sections.declared_keys["surfaces"] == {"cooling"}


def test_keys_of_invalid_items_remain_known() -> None:
    """Invalid items are left out, but their keys are returned, so that references to them are not errors."""
    sections = Sections.from_invalid_document(DATA, [("team", 1, "name"), ("surfaces",)])
    assert [(index, member.id) for index, member in sections.team] == [(0, "a@x")]
    assert sections.declared_keys["team"] == {"a@x", "b@x"}
    assert (sections.surfaces, sections.head is None) == ([], True)


def test_invalid_items_do_not_invalidate_the_settings() -> None:
    """Errors in items do not make the settings (id, tier, limits and policies) invalid."""
    sections = Sections.from_invalid_document(DATA, [("team", 1, "name"), ("surfaces", 0)])
    assert sections.head is not None
    assert sections.head.workspace.id == "plant-a"


def test_a_document_that_is_not_an_object_has_no_items() -> None:
    """A document that is a list has no sections with items."""
    sections = Sections.from_invalid_document([MEMBER], [()])
    assert (sections.head, sections.team) == (None, [])
