"""Tests of the rules for names and ids."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.validation.names import (
    find_id_error,
    find_name_error,
    find_nearest_names,
    find_unicode_scripts,
    format_nearest_names_suggestion,
    to_identity_key,
)


@pytest.mark.parametrize(
    "name", ["Pump rig", "Kühlwasser", "冷却水 ポンプ", "ann.o'neil@plant-a.example", "Zone 4 (north) #2", "a" * 256]
)
def test_ordinary_names_are_accepted(name: str) -> None:
    """A name can contain letters of any script, digits, punctuation and inner blanks."""
    assert find_name_error(name) is None


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        (" admin", "space"),
        ("admin ", "space"),
        ("admin\u00a0", "space"),
        ("\u3000admin", "space"),
        ("ad\u200bmin", "U+200B is character 3"),
        ("\u202enimda", "U+202E is character 1"),
        ("ad\u00admin", "U+00AD"),
        ("admin\ufeff", "U+FEFF"),
        ("ad\u2066min", "U+2066"),
        ("admin\n", "U+000A"),
        ("admin\ufe0f", "U+FE0F"),
        ("admin\U000e0101", "U+E0101"),
        ("ad\u180bmin", "U+180B"),
        ("\u0301admin", "combining mark"),
        ("ad\u2028min", "U+2028"),
        ("ad\x85min", "U+0085"),
        ("admin\u3164", "U+3164"),
        ("Ku\u0308hlung", "NFC"),
        ("\u212b-rig", "NFC"),
    ],
)
def test_names_in_look_alike_forms_are_rejected(name: str, rule: str) -> None:
    """A name with invisible characters, outer blanks or decomposed letters is rejected with the rule that it breaks."""
    message = find_name_error(name)
    assert message is not None
    assert rule in message


@pytest.mark.parametrize(
    ("text", "rule"),
    [(".", "must not be ."), ("..", "must not be ."), ("a\n", "U+000A")],
)
def test_ids_that_an_address_cannot_contain_are_rejected(text: str, rule: str) -> None:
    """An id that clients change in the path of a URL is rejected; a slash and escapes are allowed."""
    assert rule in str(find_id_error(text))
    assert find_id_error("a/b %20%25%2F") is None


@given(st.text(max_size=20))
def test_an_accepted_name_is_displayed_unchanged(name: str) -> None:
    """An accepted name is in NFC and has no outer white space and no control or format characters."""
    if find_name_error(name) is None:
        assert name == unicodedata.normalize("NFC", name).strip()
        assert not {unicodedata.category(character) for character in name} & {"Cc", "Cf"}


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("admin@plant-a.example", ["LATIN"]),
        ("\u0430dmin@plant-a.example", ["CYRILLIC", "LATIN"]),
        ("\u03bf.rig", ["GREEK", "LATIN"]),
        ("\uff41dmin", ["FULLWIDTH", "LATIN"]),
        ("rig-\u0663", ["ARABIC-INDIC", "LATIN"]),
        ("東京タワー", ["EAST ASIAN"]),
        ("42-7", []),
    ],
)
def test_the_scripts_of_a_text_are_listed(text: str, scripts: list[str]) -> None:
    """The scripts of the letters and digits in a text are listed; ASCII digits and punctuation have no script."""
    assert find_unicode_scripts(text) == scripts


def test_ids_that_differ_only_in_form_have_equal_keys() -> None:
    """Ids that differ only in letter case, width or compatibility forms have the same key for comparison."""
    assert len({to_identity_key(text) for text in ("Admin", "admin", "\uff21dmin", "\uff41DMIN")}) == 1
    assert to_identity_key("\u0430dmin") != to_identity_key("admin")


@pytest.mark.parametrize(
    ("misspelt", "sentence"),
    [
        ("compressor_stat", " The nearest is compressor-status."),
        ("line-3", " The nearest are line-2, line-1."),
        ("%", ""),
    ],
)
def test_only_near_names_are_suggested(misspelt: str, sentence: str) -> None:
    """The sentence about an unknown name lists the similar known names; it is empty if no name is similar."""
    known = ["compressor-status", "line-1", "line-2"]
    assert format_nearest_names_suggestion(find_nearest_names(misspelt, known)) == sentence
