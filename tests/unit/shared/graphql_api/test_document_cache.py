"""Tests of the cache of GraphQL documents: merging selections, validation limits, and size."""

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

from bench.graphql_list import CALLER, CountingStores, build_catalog, build_graphql_service
from shared.graphql_api import document_cache
from shared.graphql_api.document_cache import DocumentCache, PreparedDocument, remove_repeated_selections
from tests.random_examples import scale_examples

SCHEMA: GraphQLSchema = build_graphql_service(CountingStores(build_catalog(1, 1))).schema
OVERLAPPING = "{" + " ".join(f"...F{n}" for n in range(400)) + "}"
FRAGMENTS = " ".join(f"fragment F{n} on Query {{ workspace {{ id }} }}" for n in range(400))


def list_validation_errors(prepared: PreparedDocument) -> list[str]:
    """Return the validation errors of a document."""
    return [error.message for error in prepared.errors]


class _Doubling(Visitor):
    def leave_selection_set(self, node: SelectionSetNode, *_: object) -> SelectionSetNode:
        return replace(node, selections=(*node.selections, *node.selections))


@settings(max_examples=scale_examples(30), deadline=None)
@given(queries(SCHEMA))
def test_repeated_selections_are_merged(text: str) -> None:
    """If each selection of a document is repeated, merging restores the original document."""
    plain = remove_repeated_selections(parse(text))
    assert print_ast(remove_repeated_selections(visit(plain, _Doubling()))) == print_ast(plain)
    assert validate(SCHEMA, plain) == validate(SCHEMA, parse(text)) == []


def test_thousands_of_equal_fields_are_validated_as_one() -> None:
    """Thousands of equal fields within the token limit are validated and executed as one."""
    many = DocumentCache(SCHEMA).load_in_current_thread("{ workspace {" + " id" * 4900 + "} }")
    assert many.errors == ()
    assert many.document is not None
    service = build_graphql_service(CountingStores(build_catalog(1, 1)))
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
def test_different_fields_are_not_merged(selections: str) -> None:
    """Fields with equal names but different arguments, fields or aliases are rejected, not merged."""
    assert list_validation_errors(DocumentCache(SCHEMA).load_in_current_thread(f"{{ {selections} }}"))


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
async def test_merged_document_has_the_same_result(selections: str, expected: dict[str, Any]) -> None:
    """Merging a document does not change its result, also with directives and fragments."""
    fragment = " fragment F on Query { workspace { name name } }" if "...F" in selections else ""
    text = f"{{ {selections} }}{fragment}"
    service = build_graphql_service(CountingStores(build_catalog(1, 1)))
    assert (await service.run(CALLER, text, {}, None)).body == {"data": expected}
    plain = execute(SCHEMA, parse(text), context_value=await service.build_context(CALLER, loads_states=False))
    assert (await plain if asyncio.iscoroutine(plain) else plain).data == expected  # type: ignore[union-attr]


def test_expensive_overlap_is_rejected_with_a_reason() -> None:
    """A document is rejected with a reason if comparing its overlapping fields would take too long."""
    [message] = list_validation_errors(DocumentCache(SCHEMA).load_in_current_thread(f"{OVERLAPPING} {FRAGMENTS}"))
    assert "same fields" in message


@pytest.mark.parametrize("fragment_depth", [80, 40])
def test_deeply_nested_fragments_are_rejected_with_the_depth_limit(fragment_depth: int) -> None:
    """The rejection of a document whose fragments are nested too deeply names the limit of the depth."""
    last = 160 // fragment_depth
    fragments = " ".join(
        f"fragment F{number} on Connection "
        f"{{ {'surfaces { connections { ' * fragment_depth}...F{number + 1}{' } }' * fragment_depth} }}"
        for number in range(last)
    )
    text = f'{{ connection(id: "x") {{ ...F0 }} }} {fragments} fragment F{last} on Connection {{ id }}'
    [message] = list_validation_errors(DocumentCache(SCHEMA).load_in_current_thread(text))
    assert message == (
        "The document is nested too deeply; a depth of at most 12 fields is allowed, "
        "and literals of JSON with at most 100 levels."
    )


@pytest.mark.parametrize("text", ["{}", "mutation {}", "{workspace{}}", "{workspace{...on Workspace{}}}"])
def test_an_empty_selection_set_is_rejected(text: str) -> None:
    """A document with an empty selection set is rejected, as the grammar of GraphQL requires."""
    [message] = list_validation_errors(DocumentCache(SCHEMA).load_in_current_thread(text))
    assert message == "Syntax Error: a selection set must contain at least one field."


def test_a_very_deep_literal_is_rejected_with_its_limit() -> None:
    """The rejection of a literal that the parser cannot read names the limit of the levels."""
    literal = f"{{v: {'[' * 300}{']' * 300}}}"
    text = f'mutation {{ executeQuery(name: "a", parameters: {literal}) {{ meta {{ rowCount }} }} }}'
    [message] = list_validation_errors(DocumentCache(SCHEMA).load_in_current_thread(text))
    assert "literals of JSON with at most 100 levels" in message


def test_a_deep_introspection_is_rejected_with_its_limit() -> None:
    """The rejection of a deeply nested introspection names the limit; two nested lists of fields are allowed."""
    allowed = "{__schema{types{fields{type{name fields{name}}}}}}"
    assert list_validation_errors(DocumentCache(SCHEMA).load_in_current_thread(allowed)) == []
    refused = "{__schema{types{fields{type{fields{type{fields{name}}}}}}}}"
    assert list_validation_errors(DocumentCache(SCHEMA).load_in_current_thread(refused)) == [
        "An introspection may nest `fields`, `inputFields`, `interfaces` and `possibleTypes` at most 2 deep."
    ]


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
def test_hostile_documents_raise_no_exception(text: str) -> None:
    """Deep nesting, cycles, introspection and odd characters cause errors or empty results, but no exception."""
    prepared = DocumentCache(SCHEMA).load_in_current_thread(text)
    assert prepared.errors or prepared.document is not None


def test_recent_documents_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents that were used recently are cached; long documents are not."""
    monkeypatch.setattr(document_cache, "MAX_CACHED_CHARACTERS", 85)
    kept = DocumentCache(SCHEMA)
    first = kept.load_in_current_thread("{ workspace { id } }")
    long = "{ workspace { id } } #" + "x" * document_cache.MAX_CACHED_LENGTH
    for number in range(5):
        assert kept.load_in_current_thread("{ workspace { id } }") is first
        kept.load_in_current_thread(f"{{ a{number}: workspace {{ id }} }}")
    assert kept.load_in_current_thread(long) is not kept.load_in_current_thread(long)
    for number in range(3):
        kept.load_in_current_thread(f"{{ b{number}: workspace {{ id }} }}")
    assert kept.load_in_current_thread("{ workspace { id } }") is not first


@pytest.mark.parametrize("behind", ["", " ) ) ("])
def test_cache_size_is_limited(behind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many large documents arrive, the cache is not larger than two of them."""
    monkeypatch.setattr(document_cache, "MAX_CACHED_CHARACTERS", 10_000)
    kept = DocumentCache(SCHEMA)
    fields = " a" * 2_000
    tracemalloc.start()
    try:
        for number in range(10):
            kept.load_in_current_thread(f"{{ a{number}{fields} }}{behind}")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 6_000_000
    finally:
        tracemalloc.stop()
