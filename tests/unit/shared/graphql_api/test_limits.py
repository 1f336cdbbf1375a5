"""Tests of the limits of a GraphQL request."""

import pytest
from graphql import FieldNode, FragmentDefinitionNode, OperationDefinitionNode, get_introspection_query, parse
from hypothesis import given
from hypothesis import strategies as st

from shared.graphql_api.limits import (
    MAX_COST,
    MAX_DEPTH,
    MAX_ROWS,
    MAX_TYPES,
    count_fields_of_item,
    estimate_result_fields,
    find_exceeded_limit_message,
)


def get_exceeded_limit(text: str, **variables: object) -> str | None:
    """Return the limit that the first operation of a document exceeds."""
    document = parse(text)
    operation = next(each for each in document.definitions if isinstance(each, OperationDefinitionNode))
    return find_exceeded_limit_message(document, operation, variables)


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


@pytest.mark.parametrize("field", ["parameters { name type required default }", "schema { columns { name type } }"])
def test_parameters_and_columns_cost_as_much_as_one_item(field: str) -> None:
    """A page of 500 queries can contain the parameters or the columns of each query."""
    assert get_exceeded_limit(f"{{ queries(first: 500) {{ nodes {{ lookup {field} }} }} }}") is None


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


@given(st.lists(st.integers(min_value=1, max_value=10_000), min_size=1, max_size=20))
def test_the_limits_of_executed_queries_are_added(limits: list[int]) -> None:
    """The limits of all executeQuery fields may add up to 10,000 rows, the maximum of one field."""
    fields = " ".join(
        f'a{index}: executeQuery(name: "q", limit: {size}) {{ rows }}' for index, size in enumerate(limits)
    )
    broken = sum(limits) > MAX_ROWS
    assert (get_exceeded_limit(f"mutation {{ {fields} }}") is not None) is broken
    assert (get_exceeded_limit(f"mutation {{ ...f }} fragment f on Mutation {{ {fields} }}") is not None) is broken


@pytest.mark.parametrize("size", [5_001, 5_001.0])
def test_a_limit_in_a_variable_counts(size: float) -> None:
    """A limit from a variable counts like a literal; a variable can write the whole number as 5001.0."""
    field = 'executeQuery(name: "q", limit: $n) { rows }'
    assert get_exceeded_limit(f"mutation($n: Int) {{ {field} }}", n=size) is None
    message = "add up to 10002 rows; at most 10000 are allowed."
    assert (get_exceeded_limit(f"mutation($n: Int) {{ a: {field} b: {field} }}", n=size) or "").endswith(message)


def test_an_omitted_limit_counts_as_its_default() -> None:
    """An execution without a limit counts as 1,000 rows, so that one request can execute ten queries."""
    for count in (10, 11):
        fields = " ".join(f'a{index}: executeQuery(name: "q") {{ rows }}' for index in range(count))
        assert (get_exceeded_limit(f"mutation {{ {fields} }}") is not None) is (count > 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ a: __schema { types { name } } }", "aliases only for `__type`"),
        ("{ __schema { a: types { name } b: types { name } } }", "aliases only for `__type`"),
        ('{ a: __type(name: "Query") { b: name } }', "aliases only for `__type`"),
        ("{ ...f } fragment f on Query { __schema { ...g } } fragment g on __Schema { a: types { name } }", "aliases"),
        ("{ __schema { types { name } } workspace { id } }", "cannot be combined with other fields"),
        ("{ ... { __schema { types { name } } } ...f } fragment f on Query { workspace { id } }", "cannot be combined"),
        ("{ " + '__type(name: "Query") { name } ' * (MAX_TYPES + 1) + "}", "has 6 `__type` fields; at most 5"),
    ],
)
def test_an_introspection_reads_the_schema_once(text: str, message: str) -> None:
    """An introspection is an operation of its own, without aliases that would repeat the lists of the schema."""
    assert message in (get_exceeded_limit(text) or "")


@pytest.mark.parametrize(
    "text",
    [
        "{ __typename __schema { types { name } } }",
        get_introspection_query(input_value_deprecation=True, specified_by_url=True, directive_is_repeatable=True),
        '{ __schema { types { name } } a: __type(name: "Query") { name } b: __type(name: "Surface") { name } }',
        "query A { __schema { types { name } } } query B { a: workspace { id } }",
    ],
)
def test_introspections_of_usual_clients_are_allowed(text: str) -> None:
    """The introspection of usual clients, and a few types under aliases, are allowed."""
    assert get_exceeded_limit(text) is None


def test_introspection_is_not_counted() -> None:
    """Fields below ``__schema`` do not count, because introspection has its own limit."""
    deep = "{ ofType " * 20 + "{ name }" + " }" * 20
    assert get_exceeded_limit("{ __schema { types " + deep + " } }") is None


@given(st.integers(min_value=1, max_value=1_000), st.integers(min_value=1, max_value=500))
def test_the_estimate_multiplies_by_the_longest_list_of_the_catalog(longest: int, size: int) -> None:
    """The estimated fields of a result assume that each list of a connection or surface is as long as the longest."""
    document = parse(f"{{ surfaces(first: {size}) {{ nodes {{ connections {{ id name }} }} }} }}")
    operation = next(each for each in document.definitions if isinstance(each, OperationDefinitionNode))
    assert estimate_result_fields(document, operation, {}, longest) == 1 + size * (1 + 1 + longest * 2)


@pytest.mark.parametrize(
    ("item_list", "fields"),
    [
        ("connections { ...names stats { lastMessage } surfaces { id name } }", 5),
        ("queries { name parameters { name type } schema { columns { name type } } }", 4),
    ],
)
def test_the_fields_of_an_item_include_fragments_but_no_items_of_its_own_lists(item_list: str, fields: int) -> None:
    """An item has the fields of its fragments and objects; a list below it counts as one field."""
    document = parse(f"{{ surface(id: 1) {{ {item_list} }} }} fragment names on Connection {{ id name }}")
    operation = next(each for each in document.definitions if isinstance(each, OperationDefinitionNode))
    fragments = {each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)}
    surface = operation.selection_set.selections[0]
    assert isinstance(surface, FieldNode)
    assert surface.selection_set is not None
    items = surface.selection_set.selections[0]
    assert isinstance(items, FieldNode)
    assert count_fields_of_item([items], operation, fragments) == fields
