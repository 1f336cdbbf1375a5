"""Tests of the parser of large JSON arrays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oi.verification.json_arrays import MAX_OBJECT_CHARACTERS, UnreadableError, iterate_json_objects

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), lambda one: st.lists(one, max_size=3)
)


@given(
    objects=st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=5),
    size=st.integers(1, 40),
    indent=st.sampled_from([None, 2]),
)
def test_objects_are_parsed_whatever_the_parts_are(
    objects: list[dict[str, object]], size: int, indent: int | None
) -> None:
    """The result does not depend on where the text is divided into parts, and equals that of one call of ``json``."""
    text = json.dumps(objects, indent=indent, ensure_ascii=indent is None).encode()
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    assert list(iterate_json_objects(parts)) == objects


DEEP = "[" * 100_000
OTHER_TEXTS = ["", " ", "{}", "[", "[1]", "[[]]", "[{}", "[{},", "[{},]", "[{} {}]", "[{}]]", "[{}]x", "[{]",
               '[{"a":1,"a":2}]', DEEP, f'[{{"a":{DEEP}', f'[{{"a":{"1" * 5_000}}}]']  # fmt: skip


@pytest.mark.parametrize("text", OTHER_TEXTS)
def test_other_texts_are_rejected(text: str) -> None:
    """A text that is not a JSON array of objects without duplicate names is rejected."""
    with pytest.raises(UnreadableError, match="the file is not"):
        list(iterate_json_objects([text.encode()]))


def test_an_endless_object_is_rejected() -> None:
    """An object that is longer than every genuine record is rejected before the rest of the text is read."""
    parts = iter([b'[{"a":"', *[b"x" * 1_000_000] * 100])
    with pytest.raises(UnreadableError, match=f"more than {MAX_OBJECT_CHARACTERS:,} characters"):
        list(iterate_json_objects(parts))
    assert len(list(parts)) > 90


def test_the_length_of_an_object_is_limited_exactly() -> None:
    """An object of the maximum length is parsed, and a longer one is rejected, also if it arrives in one part."""
    content = b"x" * (MAX_OBJECT_CHARACTERS - len('{"a":""}'))
    assert len(list(iterate_json_objects([b'[{"a":"' + content + b'"}]']))) == 1
    with pytest.raises(UnreadableError, match=f"object 1 of the file has more than {MAX_OBJECT_CHARACTERS:,} char"):
        list(iterate_json_objects([b'[{"a":"x' + content + b'"}]']))


@pytest.mark.parametrize(("text", "place"), [("[{}", "after 1 object"), ("[{},{}", "after 2 objects")])
def test_the_place_of_a_fault_is_named(text: str, place: str) -> None:
    """The error about a missing character states the number of objects before it."""
    with pytest.raises(UnreadableError, match=f"`]` is missing {place}$"):
        list(iterate_json_objects([text.encode()]))


def test_objects_are_parsed_before_the_rest_is_read() -> None:
    """Each object is returned as soon as its part was read, so that memory does not depend on the number of objects."""
    parts = iter([b"[{}", b",{}", b",x"])
    objects = iterate_json_objects(parts)
    assert [next(objects), next(objects)] == [{}, {}]
    with pytest.raises(UnreadableError):
        next(objects)
