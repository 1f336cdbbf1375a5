"""Tests of If-Match and If-None-Match as RFC 9110 defines them."""

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
def test_lists_of_etags_are_parsed(header: str, tags: EntityTags) -> None:
    """A header with a star, or with strong and weak ETags and empty elements, is parsed."""
    assert condition_from_headers(header, None) == Condition(match=tags)
    assert condition_from_headers(None, header) == Condition(none_match=tags)


@pytest.mark.parametrize(
    "header",
    ["", " ", ",", "a", '"a', 'a"', '"a" "b"', '"a""b"', "*, *", '*,"a"', 'w/"a"', 'W / "a"', '"a\x01"', '"a b"'],
)
def test_invalid_conditional_headers_are_rejected(header: str) -> None:
    """The error about an invalid header names the header."""
    with pytest.raises(WorkspaceError, match="If-Match: must be a list of ETags"):
        condition_from_headers(header, None)
    with pytest.raises(WorkspaceError, match="If-None-Match: must be a list of ETags"):
        condition_from_headers(None, header)


@given(st.lists(st.tuples(st.booleans(), TAGS), min_size=1, max_size=5))
def test_every_etag_list_is_parsed_completely(tags: list[tuple[bool, str]]) -> None:
    """All ETags of a header are returned in order."""
    header = ",".join(f'{"W/" if weak else ""}"{tag}"' for weak, tag in tags)
    read = condition_from_headers(header, None).match
    assert read is not None
    assert read.strong == tuple(f'"{tag}"' for weak, tag in tags if not weak)
    assert read.weak == tuple(f'"{tag}"' for weak, tag in tags if weak)


@given(st.text(max_size=30) | st.text(' \t,"*W/a\x80', max_size=12))
def test_the_documented_etag_pattern_matches_the_parser(header: str) -> None:
    """The parser of ETag lists accepts exactly the texts that match the documented pattern."""
    described = re.search(HEADER_PATTERN, header) is not None and not header.endswith("\n")
    try:
        condition_from_headers(header, header)
    except WorkspaceError as error:
        assert error.code == "INVALID_REQUEST"  # noqa: PT017  either outcome is right
        assert not described
    else:
        assert described


def test_weak_etags_match_only_in_if_none_match() -> None:
    """If-Match compares ETags strongly, If-None-Match compares them weakly."""
    weak = condition_from_headers('W/"a"', 'W/"a"')
    assert weak.is_not_modified('"a"')
    with pytest.raises(WorkspaceError):
        weak.check_if_match('"a"')
    assert condition_from_headers('"a"', None).single_etag == '"a"'
    assert condition_from_headers('"a","b"', None).single_etag is None
    assert condition_from_headers("*", None).is_empty
    assert not condition_from_headers("*", "*").is_empty


@pytest.mark.parametrize(
    ("condition", "allowed"),
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
def test_a_write_that_fails_its_condition_is_rejected(condition: Condition, allowed: set[str | None]) -> None:
    """A write is allowed only if the ETag of the stored item meets the condition in the request."""
    assert {state for state in ('"a"', None) if condition.is_satisfied_by(state)} == allowed
    for state in {'"a"', None} - allowed:
        with pytest.raises(WorkspaceError) as caught:
            condition.check_write_allowed(state)
        assert caught.value.code == "PRECONDITION_FAILED"
    for state in allowed:
        condition.check_write_allowed(state)


@pytest.mark.parametrize(
    ("condition", "stored", "expected"),
    [
        (Condition(match=EntityTags(every=True)), None, "does not exist"),
        (Condition(match=EntityTags(strong=('"a"',))), None, "does not exist"),
        (Condition(match=EntityTags(strong=('"a"',))), '"b"', "does not match the stored version"),
        (Condition(none_match=EntityTags(every=True)), '"a"', "exists already"),
    ],
)
def test_a_rejected_write_names_the_reason(condition: Condition, stored: str | None, expected: str) -> None:
    """The error says whether the item is missing, exists already, or has another version than required."""
    with pytest.raises(WorkspaceError, match=expected) as caught:
        condition.check_write_allowed(stored)
    assert caught.value.code == "PRECONDITION_FAILED"
