"""If-Match and If-None-Match as RFC 9110 has them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.conditional_requests import HEADER_PATTERN, UNCONDITIONAL, Condition, EntityTags, condition_from_headers
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
    assert condition_from_headers(header, None) == Condition(match=tags)
    assert condition_from_headers(None, header) == Condition(none_match=tags)


@pytest.mark.parametrize(
    "header",
    ["", " ", ",", "a", '"a', 'a"', '"a" "b"', '"a""b"', "*, *", '*,"a"', 'w/"a"', 'W / "a"', '"a\x01"', '"a b"'],
)
def test_anything_else_is_refused(header: str) -> None:
    """What is no list of entity tags names the header."""
    with pytest.raises(WorkspaceError, match="If-Match: must be a list of ETags"):
        condition_from_headers(header, None)
    with pytest.raises(WorkspaceError, match="If-None-Match: must be a list of ETags"):
        condition_from_headers(None, header)


@given(st.lists(st.tuples(st.booleans(), TAGS), min_size=1, max_size=5))
def test_every_list_is_read_back(tags: list[tuple[bool, str]]) -> None:
    """Any list of tags comes back whole, in order."""
    header = ",".join(f'{"W/" if weak else ""}"{tag}"' for weak, tag in tags)
    read = condition_from_headers(header, None).match
    assert read is not None
    assert read.strong == tuple(f'"{tag}"' for weak, tag in tags if not weak)
    assert read.weak == tuple(f'"{tag}"' for weak, tag in tags if weak)


@given(st.text(max_size=30) | st.text(' \t,"*W/a\x80', max_size=12))
def test_no_text_breaks_it(header: str) -> None:
    """Whatever a header says, it is read or refused, as its description says."""
    described = re.search(HEADER_PATTERN, header) is not None and not header.endswith("\n")
    try:
        condition_from_headers(header, header)
    except WorkspaceError as error:
        assert error.code == "INVALID_REQUEST"  # noqa: PT017  either outcome is right
        assert not described
    else:
        assert described


def test_weak_tags_match_only_if_none_match() -> None:
    """If-Match compares strongly, If-None-Match weakly."""
    weak = condition_from_headers('W/"a"', 'W/"a"')
    assert weak.is_known('"a"')
    with pytest.raises(WorkspaceError):
        weak.check_match('"a"')
    assert condition_from_headers('"a"', None).single_etag == '"a"'
    assert condition_from_headers('"a","b"', None).single_etag is None
    assert condition_from_headers("*", None).is_empty
    assert not condition_from_headers("*", "*").is_empty


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (UNCONDITIONAL, {'"a"', None}),
        (condition_from_headers("*", None), {'"a"'}),
        (condition_from_headers('"a"', None), {'"a"'}),
        (condition_from_headers('"b", "a"', None), {'"a"'}),
        (condition_from_headers('W/"a"', None), set()),
        (condition_from_headers('"b"', None), set()),
        (condition_from_headers(None, "*"), {None}),
        (condition_from_headers(None, 'W/"a"'), {None}),
        (condition_from_headers(None, '"b"'), {'"a"', None}),
        (condition_from_headers('"a"', '"a"'), set()),
        (condition_from_headers('"a"', '"b"'), {'"a"'}),
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
