"""Tests of the limits of a GraphQL request."""

from graphql import OperationDefinitionNode, parse
from hypothesis import given
from hypothesis import strategies as st

from shared.graphql_api.limits import MAX_COST, MAX_DEPTH, find_exceeded_limit


def get_exceeded_limit(text: str, **variables: object) -> str | None:
    """Return the limit that the first operation of a document exceeds."""
    document = parse(text)
    operation = next(each for each in document.definitions if isinstance(each, OperationDefinitionNode))
    return find_exceeded_limit(document, operation, variables)


@given(st.integers(min_value=0, max_value=500), st.integers(min_value=1, max_value=30))
def test_a_root_list_costs_one_plus_its_items(size: int, fields: int) -> None:
    """A root list costs one, plus the cost of its fields for each item of the page."""
    below = " ".join(["id"] * fields)
    broken = get_exceeded_limit(f"{{ surfaces(first: {size}) {{ nodes {{ {below} }} }} }}")
    assert (broken is not None) is (1 + size * (1 + fields) > MAX_COST)


@given(st.integers(min_value=1, max_value=500))
def test_a_page_size_in_a_variable_counts_towards_the_cost(size: int) -> None:
    """A page size from a variable, or from its default, costs as much as a literal."""
    rest = "{ nodes { connections { id name type } } } }"
    written = get_exceeded_limit(f"{{ surfaces(limit: {size}) {rest}")
    assert get_exceeded_limit(f"query($n: Int) {{ surfaces(limit: $n) {rest}", n=size) == written
    assert get_exceeded_limit(f"query($n: Int = {size}) {{ surfaces(limit: $n) {rest}") == written


def test_a_nested_list_counts_as_ten_items() -> None:
    """A list inside a surface or connection counts as ten items."""
    assert get_exceeded_limit("{ surface(id: 1) { connections { surfaces { connections { id } } } } }") is None
    assert (
        get_exceeded_limit("{ surface(id: 1) { connections { surfaces { connections { surfaces { id } } } } } }")
        is not None
    )


@given(st.integers(min_value=1, max_value=30))
def test_depth_counts_fields_through_fragments(depth: int) -> None:
    """Fields in fragments count towards the depth as fields of the query do."""
    nested = "{ stats " * (depth - 1) + "{ id }" + " }" * (depth - 1)
    broken = depth > MAX_DEPTH
    assert (get_exceeded_limit(nested) is not None) is broken
    inner = nested.removeprefix("{").removesuffix("}")
    assert (get_exceeded_limit(f"{{ ...f }} fragment f on Query {{ {inner} }}") is not None) is broken


def test_fragments_are_measured_once() -> None:
    """If each fragment uses the next one twice, cost and depth are still computed in linear time."""
    chain = " ".join(f"fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }}" for n in range(200))
    broken = get_exceeded_limit(f"{{ ...f0 }} {chain} fragment f200 on Query {{ id }}")
    assert broken is not None
    assert "cost" in broken


def test_aliases_in_fragments_are_counted() -> None:
    """Aliases in fragments count like aliases in the operation."""
    aliases = " ".join(f"a{n}: id" for n in range(51))
    assert get_exceeded_limit(f"{{ ...f }} fragment f on Query {{ {aliases} }}") is not None
    assert get_exceeded_limit("{ a: id }") is None


def test_introspection_is_not_counted() -> None:
    """Fields below ``__schema`` do not count, because introspection has its own limit."""
    deep = "{ ofType " * 20 + "{ name }" + " }" * 20
    assert get_exceeded_limit("{ __schema { types " + deep + " } }") is None
