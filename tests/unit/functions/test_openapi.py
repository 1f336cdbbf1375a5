"""Tests of the serialised OpenAPI documents."""

import json
from datetime import UTC, datetime

import orjson

from functions import GROUPS
from functions.openapi import (
    MAX_DOCUMENTS,
    OpenApiCache,
    OpenApiKey,
    SerializedOpenApi,
    serialize_document,
    serialize_path_item,
)
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import Approval, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.openapi.document import build_openapi_document_for_caller
from shared.text_formats.serialisation import serialise_json
from shared.warm_queries.ports import Column

AT = datetime(2026, 1, 5, tzinfo=UTC)
KEY = OpenApiKey(frozenset({"mcp"}), "")
PRINCIPAL = Principal("m", "m", "m", frozenset(AccessRight), CredentialKind.JWT, "c", None)
DOCUMENT = SerializedOpenApi(b"{}", '"e"')


def build_catalog(queries: int) -> Catalog:
    """Return a catalog with approved queries."""
    approval = Approval(approved_by="a", approved_at=AT)
    models = [
        WarmQuery(lookup=f"q{number}", name=f"Q{number}", surface="s", kql="print 1", approval=approval)
        for number in range(queries)
    ]
    return Catalog(version=1, queries={each.lookup: CatalogEntry(each, AT, AT, "e") for each in models})


def test_paths_are_serialised_one_by_one() -> None:
    """Each path is serialised separately, so that no call takes long; the document is the same."""
    operations = [operation for group in GROUPS for operation in group.operations]
    catalog = build_catalog(5)
    columns = {"q1": (Column("n", "long"),)}
    whole = build_openapi_document_for_caller(operations, PRINCIPAL, (), catalog, columns)
    parts = build_openapi_document_for_caller(
        operations, PRINCIPAL, (), catalog, columns, convert_path_item=serialize_path_item
    )
    assert "/oi-api/warm-queries/q4" in parts["paths"]
    assert all(isinstance(item, orjson.Fragment) for item in parts["paths"].values())
    serialized = serialize_document(parts)
    assert serialized.body == serialise_json(whole)
    assert json.loads(serialized.body)["paths"].keys() == whole["paths"].keys()


def test_openapi_documents_of_one_catalog_version_are_cached() -> None:
    """A cached document is returned only for the same catalog version, operations and query columns."""
    cache, columns = OpenApiCache(), [(Column("n", "long"),), None]
    cache.store_document(2, KEY, columns, DOCUMENT)
    assert cache.find_document(2, KEY, list(columns)) is DOCUMENT
    assert cache.find_document(3, KEY, columns) is None
    assert cache.find_document(2, KEY, [None, None]) is None
    assert cache.find_document(2, OpenApiKey(frozenset(), ""), columns) is None
    cache.store_document(1, OpenApiKey(frozenset(), ""), columns, DOCUMENT)
    assert cache.find_document(1, OpenApiKey(frozenset(), ""), columns) is None
    cache.store_document(3, OpenApiKey(frozenset(), ""), columns, DOCUMENT)
    assert cache.find_document(2, KEY, columns) is None


def test_the_number_of_cached_openapi_documents_is_limited() -> None:
    """The cache of documents is limited; the least recently used document is removed first."""
    cache = OpenApiCache()
    keys = [OpenApiKey(frozenset({str(number)}), "") for number in range(MAX_DOCUMENTS + 1)]
    for key in keys[:-1]:
        cache.store_document(1, key, [], DOCUMENT)
    assert cache.find_document(1, keys[0], []) is DOCUMENT
    cache.store_document(1, keys[-1], [], DOCUMENT)
    assert [cache.find_document(1, key, []) is None for key in keys] == [False, True] + [False] * (MAX_DOCUMENTS - 1)
