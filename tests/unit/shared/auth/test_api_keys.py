"""Tests of the text form of API keys."""

import pytest

from shared.auth.api_keys import generate_api_key, is_key_id, is_secret_valid, parse_key_id_and_secret
from shared.runtime import SYSTEM_RUNTIME


def test_a_new_api_key_is_parsed_and_verified() -> None:
    """A new key's text contains its id, and a secret that matches the stored digest."""
    new = generate_api_key(SYSTEM_RUNTIME)
    parsed = parse_key_id_and_secret(new.text)
    assert parsed is not None
    assert parsed[0] == new.key_id
    assert is_key_id(new.key_id)
    assert is_secret_valid(new.salt, new.digest, parsed[1])
    assert not is_secret_valid(new.salt, new.digest, parsed[1][::-1])
    assert not is_secret_valid(new.salt[::-1], new.digest, parsed[1])


def test_a_seed_determines_the_api_key() -> None:
    """Two keys that are created with the same seed are equal; keys with different seeds or without a seed differ."""
    first, second = generate_api_key(SYSTEM_RUNTIME, b"seed" * 8), generate_api_key(SYSTEM_RUNTIME, b"seed" * 8)
    assert first == second
    others = [
        generate_api_key(SYSTEM_RUNTIME, b"Seed" * 8),
        generate_api_key(SYSTEM_RUNTIME),
        generate_api_key(SYSTEM_RUNTIME),
    ]
    for part in ("text", "key_id", "salt", "digest"):
        assert len({getattr(each, part) for each in (first, *others)}) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "oik_ABCDEFGH_" + "x" * 42,
        "oik_ABCDEFGH_" + "x" * 44,
        "oik_abcdefgh_" + "x" * 43,
        "oik_ABCDEFG1_" + "x" * 43,
        "oik_ABCDEFGH_" + "x" * 42 + "+",
        "oik_ABCDEFGH_" + "x" * 43 + "\n",
        " oik_ABCDEFGH_" + "x" * 43,
    ],
)
def test_texts_in_another_form_are_not_api_keys(text: str) -> None:
    """A text is not an API key if its length or its characters differ from those of API keys."""
    assert parse_key_id_and_secret(text) is None
