"""If-Match and If-None-Match as RFC 9110 has them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.conditional_requests import HEADER_PATTERN, UNCONDITIONAL, Condition, EntityTags, parse_condition
from shared.errors import WorkspaceError

TAGS = st.text(
    st.characters(codec="latin-1", exclude_characters='"', exclude_categories=["Cc"]).filter(
        lambda c: c not in " \xa0\xad"
    ),
    max_size=8,
)


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ('"a"', EntityTags(strong=('"a"',))),
        ("*", EntityTags(every=True)),
        (" * ", EntityTags(every=True)),
        ('"a","b" , W/"c"', EntityTags(strong=('"a"', '"b"'), weak=('"c"',))),
        (', ,"a",,', EntityTags(strong=('"a"',))),
        ('""', EntityTags(strong=('""',))),
        ('"a,b"', EntityTags(strong=('"a,b"',))),
    ],
)
def test_lists_of_tags_are_read(header: str, tags: EntityTags) -> None:
    """Strong and weak tags with commas between, empty elements among them, or a star."""
    assert parse_condition(header, None) == Condition(match=tags)
    assert parse_condition(None, header) == Condition(none_match=tags)


@pytest.mark.parametrize(
    "header",
    ["", " ", ",", "a", '"a', 'a"', '"a" "b"', '"a""b"', "*, *", '*,"a"', 'w/"a"', 'W / "a"', '"a\x01"', '"a b"'],
)
def test_anything_else_is_refused(header: str) -> None:
    """What is no list of entity tags names the header."""
    with pytest.raises(WorkspaceError, match="If-Match: a list of entity tags"):
        parse_condition(header, None)
    with pytest.raises(WorkspaceError, match="If-None-Match: a list of entity tags"):
        parse_condition(None, header)


@given(st.lists(st.tuples(st.booleans(), TAGS), min_size=1, max_size=5))
def test_every_list_is_read_back(tags: list[tuple[bool, str]]) -> None:
    """Any list of tags comes back whole, in order."""
    header = ",".join(f'{"W/" if weak else ""}"{tag}"' for weak, tag in tags)
    read = parse_condition(header, None).match
    assert read is not None
    assert read.strong == tuple(f'"{tag}"' for weak, tag in tags if not weak)
    assert read.weak == tuple(f'"{tag}"' for weak, tag in tags if weak)


@given(st.text(max_size=30) | st.text(' \t,"*W/a\x80', max_size=12))
def test_no_text_breaks_it(header: str) -> None:
    """Whatever a header says, it is read or refused, as its description says."""
    described = re.search(HEADER_PATTERN, header) is not None and not header.endswith("\n")
    try:
        parse_condition(header, header)
    except WorkspaceError as error:
        assert error.code == "INVALID_REQUEST"  # noqa: PT017  either outcome is right
        assert not described
    else:
        assert described


def test_weak_tags_match_only_if_none_match() -> None:
    """If-Match compares strongly, If-None-Match weakly."""
    weak = parse_condition('W/"a"', 'W/"a"')
    assert weak.known('"a"')
    with pytest.raises(WorkspaceError):
        weak.check_match('"a"')
    assert parse_condition('"a"', None).single == '"a"'
    assert parse_condition('"a","b"', None).single is None
    assert parse_condition("*", None).empty
    assert not parse_condition("*", "*").empty


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (UNCONDITIONAL, {'"a"', None}),
        (parse_condition("*", None), {'"a"'}),
        (parse_condition('"a"', None), {'"a"'}),
        (parse_condition('"b", "a"', None), {'"a"'}),
        (parse_condition('W/"a"', None), set()),
        (parse_condition('"b"', None), set()),
        (parse_condition(None, "*"), {None}),
        (parse_condition(None, 'W/"a"'), {None}),
        (parse_condition(None, '"b"'), {'"a"', None}),
        (parse_condition('"a"', '"a"'), set()),
        (parse_condition('"a"', '"b"'), {'"a"'}),
    ],
)
def test_a_write_is_refused_where_a_condition_does_not_hold(asked: Condition, allowed: set[str | None]) -> None:
    """Of what exists with the tag "a", and of what does not exist, a condition lets some be written."""
    assert {state for state in ('"a"', None) if asked.allows(state)} == allowed
    for state in {'"a"', None} - allowed:
        with pytest.raises(WorkspaceError) as refused:
            asked.check_write(state)
        assert refused.value.code == "PRECONDITION_FAILED"
    for state in allowed:
        asked.check_write(state)
