"""If-Match and If-None-Match as RFC 9110 has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data_stores.conditions import Condition, Tags, condition
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
        ('"a"', Tags(strong=('"a"',))),
        ("*", Tags(every=True)),
        (" * ", Tags(every=True)),
        ('"a","b" , W/"c"', Tags(strong=('"a"', '"b"'), weak=('"c"',))),
        (', ,"a",,', Tags(strong=('"a"',))),
        ('""', Tags(strong=('""',))),
        ('"a,b"', Tags(strong=('"a,b"',))),
    ],
)
def test_lists_of_tags_are_read(header: str, tags: Tags) -> None:
    """Strong and weak tags with commas between, empty elements among them, or a star."""
    assert condition(header, None) == Condition(match=tags)
    assert condition(None, header) == Condition(none_match=tags)


@pytest.mark.parametrize(
    "header",
    ["", " ", ",", "a", '"a', 'a"', '"a" "b"', '"a""b"', "*, *", '*,"a"', 'w/"a"', 'W / "a"', '"a\x01"', '"a b"'],
)
def test_anything_else_is_refused(header: str) -> None:
    """What is no list of entity tags names the header."""
    with pytest.raises(WorkspaceError, match="If-Match: a list of entity tags"):
        condition(header, None)
    with pytest.raises(WorkspaceError, match="If-None-Match: a list of entity tags"):
        condition(None, header)


@given(st.lists(st.tuples(st.booleans(), TAGS), min_size=1, max_size=5))
def test_every_list_is_read_back(tags: list[tuple[bool, str]]) -> None:
    """Any list of tags comes back whole, in order."""
    header = ",".join(f'{"W/" if weak else ""}"{tag}"' for weak, tag in tags)
    read = condition(header, None).match
    assert read is not None
    assert read.strong == tuple(f'"{tag}"' for weak, tag in tags if not weak)
    assert read.weak == tuple(f'"{tag}"' for weak, tag in tags if weak)


@given(st.text(max_size=30))
def test_no_text_breaks_it(header: str) -> None:
    """Whatever a header says, it is read or refused."""
    try:
        condition(header, header)
    except WorkspaceError as error:
        assert error.code == "INVALID_REQUEST"  # noqa: PT017  either outcome is right


def test_weak_tags_match_only_if_none_match() -> None:
    """If-Match compares strongly, If-None-Match weakly."""
    weak = condition('W/"a"', 'W/"a"')
    assert weak.known('"a"')
    with pytest.raises(WorkspaceError):
        weak.check_match('"a"')
    assert condition('"a"', None).single == '"a"'
    assert condition('"a","b"', None).single is None
    assert condition("*", None).empty
    assert not condition("*", "*").empty
