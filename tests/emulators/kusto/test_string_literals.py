"""Tests that string literals in every form and with every escape have the text of the KQL grammar."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulators.kusto.string_literals import UnreadableLiteralError, parse_string_literal
from tests.emulators.kusto.endpoints import Endpoint
from tests.random_examples import scale_examples

ANY = st.characters(exclude_categories=["Cs"])
SHORT = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\", "'": "'", '"': '"'}


def list_escapes(character: str) -> list[str]:
    """Return all escape sequences for a character, computed from its code."""
    code = ord(character)
    found = [f"\\U{code:08x}", f"\\U{code:08X}"]
    if code <= 0xFF:
        found += [f"\\x{code:02x}", f"\\{code:03o}"]
    if code <= 0xFFFF:
        found.append(f"\\u{code:04X}")
    else:
        high, low = divmod(code - 0x10000, 0x400)
        found.append(f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}")
    return [*found, f"\\{SHORT[character]}"] if character in SHORT else found


@st.composite
def draw_escaped_literal(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a quoted literal and its text; each character is plain or escaped."""
    quote = draw(st.sampled_from("'\""))
    pieces, text = [], draw(st.text(ANY | st.sampled_from("\a\b\f\n\r\t\v\\'\"\0\xff"), max_size=15))
    for character in text:
        plain = [] if character in f"\\\r\n{quote}" else [character]
        pieces.append(draw(st.sampled_from(plain + list_escapes(character))))
    return f"{draw(st.sampled_from(['', 'h', 'H']))}{quote}{''.join(pieces)}{quote}", text


@st.composite
def draw_verbatim_literal(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a verbatim literal and its text."""
    quote = draw(st.sampled_from("'\""))
    text = draw(st.text(ANY, max_size=15).filter(lambda drawn: not set(drawn) & {"\r", "\n"}))
    return f"{draw(st.sampled_from(['', 'h', 'H']))}@{quote}{text.replace(quote, quote * 2)}{quote}", text


@st.composite
def draw_multiline_literal(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a multi-line literal and its text."""
    fence = draw(st.sampled_from(["```", "~~~"]))
    text = draw(st.text(ANY, max_size=15).filter(lambda drawn: fence[0] not in drawn))
    return f"{draw(st.sampled_from(['', 'h', 'H']))}{fence}{text}{fence}", text


LITERALS = draw_escaped_literal() | draw_verbatim_literal() | draw_multiline_literal()


@given(LITERALS)
def test_string_literals_are_decoded_to_their_text(literal: tuple[str, str]) -> None:
    """A literal in any form and with any escapes is decoded to its text."""
    written, text = literal
    assert parse_string_literal(written) == text


@settings(max_examples=scale_examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(LITERALS, LITERALS)
def test_literals_in_queries_are_decoded(endpoint: Endpoint, first: tuple[str, str], second: tuple[str, str]) -> None:
    """Single literals, adjacent literals and literals in dynamic values are decoded in queries."""
    query = (
        f"print a = {first[0]}, b = {first[0]} {second[0]}, c = dynamic([{first[0]}]), d = dynamic({{{first[0]}: 1}})"
    )
    assert endpoint.query_rows(query) == [[first[1], first[1] + second[1], [first[1]], {first[1]: 1}]]


@pytest.mark.parametrize(
    "literal",
    ["h'dev-01'", "'\\u0064ev-01'", "'\\x64ev-01'", '"\\144ev-01"', "h@'dev-01'", '"dev" H"-01"', "```dev-01```"],
)
def test_string_literals_are_compared_by_their_text(endpoint: Endpoint, literal: str) -> None:
    """A literal of any form equals a stored value with the same text."""
    assert endpoint.query_rows(f"Telemetry | where DeviceId == {literal} | count") == [[100]]


def test_escapes_in_bracketed_names_are_decoded(endpoint: Endpoint) -> None:
    """Escapes in ``['...']`` are decoded like escapes in other literals."""
    assert endpoint.query_rows("['\\u0054elemetry'] | project ['N\\x75mber'] | count") == [[2000]]


@pytest.mark.parametrize(
    "literal", ["'\\48'", "'\\18'", "'\\477'", "'\\u12'", "'\\x1'", "'\\U00110000'", "'\\ud800'", "'\\'"]
)
def test_undefined_escapes_are_rejected(literal: str) -> None:
    """A literal with a malformed escape, an unpaired surrogate or an ambiguous octal code is rejected."""
    with pytest.raises(UnreadableLiteralError):
        parse_string_literal(literal)


@pytest.mark.parametrize("literal", ["'\\48'", "'\\u12'", "'\\U00110000'", "'\\q'", "'open", "'two\nlines'"])
def test_an_invalid_literal_is_a_syntax_error_with_its_position(endpoint: Endpoint, literal: str) -> None:
    """The error about an invalid literal states the literal's position."""
    error = endpoint.query_error(f"print a = 1,\n b = {literal}")
    assert "Syntax error" in str(error)
    assert "[line:position=2:6]" in str(error)
