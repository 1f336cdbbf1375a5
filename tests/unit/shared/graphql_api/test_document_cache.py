"""DocumentCache: repeated selections, bounds of validation, and what is kept."""

import asyncio
import gc
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from graphql import GraphQLSchema, SelectionSetNode, execute, parse, print_ast, validate
from graphql.language import Visitor, visit
from hypothesis import given, settings
from hypothesis_graphql import queries

from bench.graphql_list import CALLER, CountingStores, build_catalog, build_service
from shared.graphql_api import document_cache
from shared.graphql_api.document_cache import DocumentCache, PreparedDocument, merge_selections

SCHEMA: GraphQLSchema = build_service(CountingStores(build_catalog(1, 1))).schema
OVERLAPPING = "{" + " ".join(f"...F{n}" for n in range(400)) + "}"
FRAGMENTS = " ".join(f"fragment F{n} on Query {{ workspace {{ id }} }}" for n in range(400))


def messages(prepared: PreparedDocument) -> list[str]:
    """Return what is wrong with a document."""
    return [error.message for error in prepared.errors]


class _Doubling(Visitor):
    def leave_selection_set(self, node: SelectionSetNode, *_: object) -> SelectionSetNode:
        return replace(node, selections=(*node.selections, *node.selections))


@settings(max_examples=30, deadline=None)
@given(queries(SCHEMA))
def test_repeated_selections_are_merged(text: str) -> None:
    """A document in which each selection stands twice, at every level, becomes the document without repetitions."""
    plain = merge_selections(parse(text))
    assert print_ast(merge_selections(visit(plain, _Doubling()))) == print_ast(plain)
    assert validate(SCHEMA, plain) == validate(SCHEMA, parse(text)) == []


def test_fields_that_stand_often_are_one_field() -> None:
    """Thousands of copies of a field, within the token limit, are validated and answered like one."""
    many = DocumentCache(SCHEMA).prepare("{ workspace {" + " id" * 4900 + "} }")
    assert many.errors == ()
    assert many.runnable is not None
    service = build_service(CountingStores(build_catalog(1, 1)))
    answer = asyncio.run(service.run(CALLER, "{" + " workspace { id name }" * 800 + "}", {}, None))
    assert answer.body == {"data": {"workspace": {"id": "plant-t", "name": "Plant"}}}


@pytest.mark.parametrize(
    "selections",
    [
        "connection(id: 1) { id } connection(id: 2) { id }",
        "a: workspace { id } a: surfaces { totalCount }",
        "workspace { id } workspace { id: name }",
    ],
)
def test_fields_that_differ_still_conflict(selections: str) -> None:
    """What only looks alike is not merge_selections: different arguments, fields or aliases of one name are refused."""
    assert messages(DocumentCache(SCHEMA).prepare(f"{{ {selections} }}"))


@pytest.mark.parametrize(
    ("selections", "expected"),
    [
        ("workspace @skip(if: true) { id } workspace { name }", {"workspace": {"name": "Plant"}}),
        ("workspace { id } workspace { name }", {"workspace": {"id": "plant-t", "name": "Plant"}}),
        (
            "...F ...F workspace { id } ... on Query { workspace { id } }",
            {"workspace": {"id": "plant-t", "name": "Plant"}},
        ),
    ],
)
async def test_what_is_merged_is_answered_alike(selections: str, expected: dict[str, Any]) -> None:
    """Merging keeps directives, fragments and different selections below one field."""
    fragment = " fragment F on Query { workspace { name name } }" if "...F" in selections else ""
    text = f"{{ {selections} }}{fragment}"
    service = build_service(CountingStores(build_catalog(1, 1)))
    assert (await service.run(CALLER, text, {}, None)).body == {"data": expected}
    plain = execute(SCHEMA, parse(text), context_value=await service.build_context(CALLER, states=False))
    assert (await plain if asyncio.iscoroutine(plain) else plain).data == expected  # type: ignore[union-attr]


def test_overlap_beyond_the_bound_is_refused_by_name() -> None:
    """Where comparing fields would take long, the document is refused, and the message says why."""
    [message] = messages(DocumentCache(SCHEMA).prepare(f"{OVERLAPPING} {FRAGMENTS}"))
    assert "same fields" in message


@pytest.mark.parametrize(
    "text",
    [
        "{" + "... on Query {" * 2000,
        "{" + "... on Query {" * 1500 + "workspace { id }" + "}" * 1501,
        'mutation { executeQuery(name: "x", parameters: ' + "[" * 2000 + "]" * 2000 + ") { rows } }",
        "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
        "{ __schema { types { fields { type { fields { type { fields { type { name } } } } } } } } }",
        "\ufeff{ nope }",
        "{ workspace { id } } # \u0000 \ud83d\ude00 {",
    ],
)
def test_hostile_documents_are_refused_or_harmless(text: str) -> None:
    """Nesting, cycles, deep introspection and odd characters end in errors or in nothing, never in an exception."""
    prepared = DocumentCache(SCHEMA).prepare(text)
    assert prepared.errors or prepared.runnable is not None


def test_documents_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The documents used last are kept, a long one and the rest are not."""
    monkeypatch.setattr(document_cache, "MAX_CACHED_CHARACTERS", 85)
    kept = DocumentCache(SCHEMA)
    first = kept.prepare("{ workspace { id } }")
    long = "{ workspace { id } } #" + "x" * document_cache.MAX_CACHED_LENGTH
    for number in range(5):
        assert kept.prepare("{ workspace { id } }") is first
        kept.prepare(f"{{ a{number}: workspace {{ id }} }}")
    assert kept.prepare(long) is not kept.prepare(long)
    for number in range(3):
        kept.prepare(f"{{ b{number}: workspace {{ id }} }}")
    assert kept.prepare("{ workspace { id } }") is not first


@pytest.mark.parametrize("behind", ["", " ) ) ("])
def test_what_is_kept_is_bounded_by_its_size(behind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many documents of many fields come, sound or not, no more is kept than of two of them."""
    monkeypatch.setattr(document_cache, "MAX_CACHED_CHARACTERS", 10_000)
    kept = DocumentCache(SCHEMA)
    fields = " a" * 2_000
    tracemalloc.start()
    try:
        for number in range(10):
            kept.prepare(f"{{ a{number}{fields} }}{behind}")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 6_000_000
    finally:
        tracemalloc.stop()
