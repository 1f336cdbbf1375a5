"""Tests of the field types of the workspace document."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from shared.catalog.fields import DECLARED, Instant, Lookup, MemberId, Model, Name, find_reserved_id_error


class Example(Model):
    """Model with one field of each field type."""

    lookup: Lookup = "a"
    name: Name = "n"
    member: MemberId = "m"
    at: Instant = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize("lookup", ["", "-a", "a.b", "a" * 65, "ä"])
def test_a_lookup_has_only_characters_for_urls(lookup: str) -> None:
    """A lookup (id in URLs) has 1 to 64 letters, digits, ``-`` and ``_``, and begins with a letter or digit."""
    with pytest.raises(ValidationError):
        Example(lookup=lookup)


@pytest.mark.parametrize("values", [{"name": "tab\tname"}, {"member": ".."}])
def test_names_are_checked_only_in_declared_documents(values: dict[str, str]) -> None:
    """Only declared documents must follow the rules for names, so that older stored items can be loaded."""
    [(name, value)] = values.items()
    assert getattr(Example.model_validate(values), name) == value
    with pytest.raises(ValidationError):
        Example.model_validate(values, context=DECLARED)


@pytest.mark.parametrize("member_id", ["apply", "local-host", "oauth", "system", "System", "\uff53ystem"])
def test_users_of_the_services_own_audit_events_are_reserved(member_id: str) -> None:
    """An id under which the service records its own audit events is reserved, in any letter case and width."""
    rule = find_reserved_id_error(member_id)
    assert rule is not None
    assert "the service records its own audit events as this user" in rule


@pytest.mark.parametrize("member_id", ["historian", "system@plant-a.example", "apply2"])
def test_other_ids_are_not_reserved(member_id: str) -> None:
    """An id that only contains a reserved id is not reserved."""
    assert find_reserved_id_error(member_id) is None


def test_a_document_time_keeps_its_microseconds() -> None:
    """A time is written in UTC with microseconds, and parsed to the same time."""
    parsed = Example.model_validate({"at": "2026-01-05T09:00:00.000001+01:00"})
    assert parsed.model_dump(mode="json")["at"] == "2026-01-05T08:00:00.000001Z"


@pytest.mark.parametrize("value", ["2026-01-05T08:00:00", "2026-01-05", "yesterday"])
def test_a_document_time_needs_a_zone(value: str) -> None:
    """A time without a zone is ambiguous and is rejected."""
    with pytest.raises(ValidationError):
        Example.model_validate({"at": value})


def test_unknown_document_fields_are_rejected() -> None:
    """A field that a document does not have, for example a misspelt one, is rejected."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        Example.model_validate({"lokup": "a"})
