"""String literals: every form and escape stands for the text that the language's grammar gives it."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulators.kusto.string_literals import UnreadableLiteralError, text_of
from tests.emulators.kusto.endpoints import Endpoint

ANY = st.characters(exclude_categories=["Cs"])
SHORT = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\", "'": "'", '"': '"'}


def spellings(character: str) -> list[str]:
    """Return the escapes that mean a character, made from its code and not by decoding."""
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
def escaped(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a quoted literal and its text; characters stand for themselves or as any of their escapes."""
    quote = draw(st.sampled_from("'\""))
    pieces, text = [], draw(st.text(ANY | st.sampled_from("\a\b\f\n\r\t\v\\'\"\0\xff"), max_size=15))
    for character in text:
        plain = [] if character in f"\\\r\n{quote}" else [character]
        pieces.append(draw(st.sampled_from(plain + spellings(character))))
    return f"{draw(st.sampled_from(['', 'h', 'H']))}{quote}{''.join(pieces)}{quote}", text


@st.composite
def verbatim(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a verbatim literal and its text."""
    quote = draw(st.sampled_from("'\""))
    text = draw(st.text(ANY, max_size=15).filter(lambda drawn: not set(drawn) & {"\r", "\n"}))
    return f"{draw(st.sampled_from(['', 'h', 'H']))}@{quote}{text.replace(quote, quote * 2)}{quote}", text


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a literal of several lines and its text."""
    fence = draw(st.sampled_from(["```", "~~~"]))
    text = draw(st.text(ANY, max_size=15).filter(lambda drawn: fence[0] not in drawn))
    return f"{draw(st.sampled_from(['', 'h', 'H']))}{fence}{text}{fence}", text


LITERALS = escaped() | verbatim() | lines()


@given(LITERALS)
def test_a_literal_means_the_text_it_was_made_from(literal: tuple[str, str]) -> None:
    """Decoding gives back what was encoded, in every form, with every escape."""
    written, text = literal
    assert text_of(written) == text


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(LITERALS, LITERALS)
def test_the_endpoint_answers_the_text(endpoint: Endpoint, first: tuple[str, str], second: tuple[str, str]) -> None:
    """Literals in a query, in a dynamic value and beside one another arrive as their texts."""
    query = (
        f"print a = {first[0]}, b = {first[0]} {second[0]}, c = dynamic([{first[0]}]), d = dynamic({{{first[0]}: 1}})"
    )
    assert endpoint.rows(query) == [[first[1], first[1] + second[1], [first[1]], {first[1]: 1}]]


@pytest.mark.parametrize(
    "literal",
    ["h'dev-01'", "'\\u0064ev-01'", "'\\x64ev-01'", '"\\144ev-01"', "h@'dev-01'", '"dev" H"-01"', "```dev-01```"],
)
def test_a_filter_finds_the_text(endpoint: Endpoint, literal: str) -> None:
    """A comparison with any form of literal is one with its text."""
    assert endpoint.rows(f"Telemetry | where DeviceId == {literal} | count") == [[100]]


def test_a_name_in_brackets_is_a_literal_too(endpoint: Endpoint) -> None:
    """Escapes in ``['...']`` are read like those of any literal."""
    assert endpoint.rows("['\\u0054elemetry'] | project ['N\\x75mber'] | count") == [[2000]]


@pytest.mark.parametrize(
    "literal", ["'\\48'", "'\\18'", "'\\477'", "'\\u12'", "'\\x1'", "'\\U00110000'", "'\\ud800'", "'\\'"]
)
def test_what_means_nothing_certain_is_unreadable(literal: str) -> None:
    """Malformed escapes, half characters and octal codes that could end in two places have no text."""
    with pytest.raises(UnreadableLiteralError):
        text_of(literal)


@pytest.mark.parametrize("literal", ["'\\48'", "'\\u12'", "'\\U00110000'", "'\\q'", "'open", "'two\nlines'"])
def test_an_unreadable_literal_is_a_syntax_error_with_its_place(endpoint: Endpoint, literal: str) -> None:
    """The endpoint refuses such a literal and says where it stands."""
    error = endpoint.error(f"print a = 1,\n b = {literal}")
    assert "Syntax error" in str(error)
    assert "[line:position=2:6]" in str(error)
