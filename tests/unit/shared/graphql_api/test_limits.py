"""Limits of a request, worked out on its document."""

from graphql import OperationDefinitionNode, parse
from hypothesis import given
from hypothesis import strategies as st

from shared.graphql_api.limits import MAX_COST, MAX_DEPTH, find_exceeded_limit


def limit_of(text: str, **variables: object) -> str | None:
    """Return which limit a document's first operation breaks."""
    document = parse(text)
    operation = next(each for each in document.definitions if isinstance(each, OperationDefinitionNode))
    return find_exceeded_limit(document, operation, variables)


@given(st.integers(min_value=0, max_value=500), st.integers(min_value=1, max_value=30))
def test_cost_is_page_size_times_what_stands_below(size: int, fields: int) -> None:
    """A root list costs one, and what stands below it once for each item of the page."""
    below = " ".join(["id"] * fields)
    broken = limit_of(f"{{ surfaces(first: {size}) {{ nodes {{ {below} }} }} }}")
    assert (broken is not None) is (1 + size * (1 + fields) > MAX_COST)


@given(st.integers(min_value=1, max_value=500))
def test_size_in_a_variable_counts(size: int) -> None:
    """A page size that comes as a variable, or as its default, costs as much as a written one."""
    rest = "{ nodes { connections { id name type } } } }"
    written = limit_of(f"{{ surfaces(limit: {size}) {rest}")
    assert limit_of(f"query($n: Int) {{ surfaces(limit: $n) {rest}", n=size) == written
    assert limit_of(f"query($n: Int = {size}) {{ surfaces(limit: $n) {rest}") == written


def test_own_lists_cost_ten_times() -> None:
    """The lists of a surface and of a connection count as ten items each."""
    assert limit_of("{ surface(id: 1) { connections { surfaces { connections { id } } } } }") is None
    assert limit_of("{ surface(id: 1) { connections { surfaces { connections { surfaces { id } } } } } }") is not None


@given(st.integers(min_value=1, max_value=30))
def test_depth_counts_fields_through_fragments(depth: int) -> None:
    """Nesting counts whether it is written out or spread."""
    nested = "{ stats " * (depth - 1) + "{ id }" + " }" * (depth - 1)
    broken = depth > MAX_DEPTH
    assert (limit_of(nested) is not None) is broken
    inner = nested.removeprefix("{").removesuffix("}")
    assert (limit_of(f"{{ ...f }} fragment f on Query {{ {inner} }}") is not None) is broken


def test_fragments_are_weighed_once() -> None:
    """A chain of fragments that each spread the next one twice is weighed in no time, and its cost is found."""
    chain = " ".join(f"fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }}" for n in range(200))
    broken = limit_of(f"{{ ...f0 }} {chain} fragment f200 on Query {{ id }}")
    assert broken is not None
    assert "cost" in broken


def test_aliases_are_counted_everywhere() -> None:
    """Aliases in fragments count like those of the operation."""
    aliases = " ".join(f"a{n}: id" for n in range(51))
    assert limit_of(f"{{ ...f }} fragment f on Query {{ {aliases} }}") is not None
    assert limit_of("{ a: id }") is None


def test_introspection_is_not_counted_here() -> None:
    """What stands below __schema is left to the limit that introspection has of its own."""
    deep = "{ ofType " * 20 + "{ name }" + " }" * 20
    assert limit_of("{ __schema { types " + deep + " } }") is None
