"""Tests of the request bodies of webhooks."""

import re

from pydantic import TypeAdapter, ValidationError

from functions.webhooks import Description

DESCRIPTIONS: TypeAdapter[str] = TypeAdapter(Description)


def is_accepted_description(text: str) -> bool:
    """Return whether a text is a valid description of a webhook."""
    try:
        DESCRIPTIONS.validate_python(text)
    except ValidationError:
        return False
    return True


def test_webhook_descriptions_follow_the_published_pattern() -> None:
    """The check of descriptions and the pattern in the OpenAPI document accept the same characters."""
    pattern = re.compile(DESCRIPTIONS.json_schema()["pattern"])
    texts = [f"a{chr(code)}b" for code in range(0x3000)]
    assert [text for text in texts if is_accepted_description(text) is not bool(pattern.search(text))] == []


def test_descriptions_have_line_breaks_but_no_other_controls() -> None:
    """A description may contain line breaks, but no other control characters or characters that reverse text."""
    assert is_accepted_description("Shift\nleader")
    refused = ("\t", "\r", "\x1b", "\x7f", "\u2028", "\u202a", "\u202e", "\u2066", "\u2069")
    assert [each for each in refused if is_accepted_description(f"Shift{each}leader")] == []
