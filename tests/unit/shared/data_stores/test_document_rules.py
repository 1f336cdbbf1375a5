"""Tests of Cosmos DB's rules for documents that the service checks itself."""

from typing import Any
from uuid import UUID

import pytest

from shared.data_stores.document_rules import (
    LARGEST_WHOLE,
    MAX_DOCUMENT_BYTES,
    build_document_to_store,
    require_valid_document_id,
    serialise_document_draft,
)
from shared.data_stores.models import MISSING
from shared.errors import WorkspaceError
from shared.runtime import SYSTEM_RUNTIME


@pytest.mark.parametrize("document_id", ["a", "ä b", "a.", "x" * 1023, "ü" * 511])
def test_an_id_is_limited_in_bytes(document_id: str) -> None:
    """A document's id is a text with a maximum number of UTF-8 bytes."""
    assert require_valid_document_id(document_id, "id") == document_id


@pytest.mark.parametrize("document_id", ["", 7, None, "a/b", "a\\b", "a?", "a#", "a\n", ".", "..", "a ", "ü" * 512])
def test_ids_that_urls_cannot_contain_are_rejected(document_id: Any) -> None:
    """An id that cannot be part of a document's URL is rejected."""
    with pytest.raises(WorkspaceError) as raised:
        require_valid_document_id(document_id, "documentId")
    assert "documentId" in raised.value.detail


def test_a_document_gets_an_id_and_loses_system_properties() -> None:
    """A document without an id gets a new one; system properties that a client sends are removed."""
    sent = {"line": 1, "_etag": "x", "_ts": 7, "_oiWrite": "w", "_own": True}
    document = build_document_to_store(sent, SYSTEM_RUNTIME)
    assert str(UUID(document.pop("id")))
    assert document == {"line": 1, "_own": True}
    assert build_document_to_store({"id": "a"}, SYSTEM_RUNTIME) == {"id": "a"}


@pytest.mark.parametrize("value", [LARGEST_WHOLE, -LARGEST_WHOLE, 1.5e300, True, [{"a": [LARGEST_WHOLE]}]])
def test_numbers_with_an_exact_double_are_stored(value: Any) -> None:
    """A number is stored if a double represents it exactly, because Cosmos DB stores doubles."""
    assert build_document_to_store({"id": "a", "n": value}, SYSTEM_RUNTIME)["n"] == value


@pytest.mark.parametrize("value", [LARGEST_WHOLE + 1, -LARGEST_WHOLE - 1, [{"a": [2**60]}]])
def test_a_number_without_an_exact_double_is_rejected(value: Any) -> None:
    """A number that a double cannot represent is rejected; the same error lists an invalid id."""
    with pytest.raises(WorkspaceError) as raised:
        build_document_to_store({"id": "", "n": value}, SYSTEM_RUNTIME)
    errors: Any = raised.value.members["errors"]
    assert [each["field"] for each in errors] == ["id", "n"]


def test_a_numeric_id_is_reported_once() -> None:
    """An id that is a number is reported once, even if a double cannot represent it."""
    with pytest.raises(WorkspaceError) as raised:
        build_document_to_store({"id": 2**60}, SYSTEM_RUNTIME)
    errors: Any = raised.value.members["errors"]
    assert len(errors) == 1


def test_the_size_of_a_documents_text_is_limited() -> None:
    """The size limit of a document applies to its JSON text without white space."""
    frame = len(b'{"id":"a","t":""}')
    fitting = {"id": "a", "t": "x" * (MAX_DOCUMENT_BYTES - frame)}
    assert len(serialise_document_draft(fitting, MISSING).text) == MAX_DOCUMENT_BYTES
    with pytest.raises(WorkspaceError) as raised:
        serialise_document_draft({**fitting, "t": fitting["t"] + "x"}, MISSING)
    assert raised.value.code == "DOCUMENT_TOO_LARGE"
