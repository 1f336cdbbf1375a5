"""Scanning KQL texts into tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.kql_tokens import TokenKind, mask_literals, tokenize

KQL = st.text(alphabet="ab1'\"\\@/`~\n |;()*", max_size=60)


@given(KQL)
def test_blanking_keeps_every_position(kql: str) -> None:
    """The blanked text has the length of the original, so that positions in it are positions there."""
    assert len(mask_literals(kql)) == len(kql)


@given(KQL)
def test_tokens_are_in_order_and_leave_out_only_space_and_comments(kql: str) -> None:
    """Each token is the text at its offset, and only white space and comments lie between two tokens."""
    end = 0
    for token in tokenize(kql):
        assert kql[token.start :].startswith(token.text)
        assert not mask_literals(kql)[end : token.start].strip()
        end = token.start + len(token.text)
    assert not mask_literals(kql)[end:].strip()


@given(KQL)
def test_blanking_and_tokens_agree_on_strings(kql: str) -> None:
    """A closed string is the only token that changes when the text is blanked."""
    blanked = mask_literals(kql)
    for token in tokenize(kql):
        if token.kind != TokenKind.STRING:
            assert blanked[token.start :].startswith(token.text)


@pytest.mark.parametrize(
    ("kql", "blanked"),
    [
        ("T | where a == 'x;y'", "T | where a == '   '"),
        ('T | where a == "x\\";y"', "T | where a == '     '"),
        ("T | where a == @'x\\'", "T | where a == '   '"),
        ("T | where a == @'x''y'", "T | where a == '     '"),
        ("T // ; .drop\n| take 1", "T           \n| take 1"),
        ("print ```a;\nb```", "print '        '"),
        ("print h'secret'", "print h'      '"),
        ("print 'http://x'", "print '        '"),
    ],
)
def test_strings_and_comments_are_blanked(kql: str, blanked: str) -> None:
    """Each form of string and comment turns into spaces."""
    assert mask_literals(kql) == blanked


@pytest.mark.parametrize(
    ("kql", "unclosed"),
    [
        ('print "a // b\n| take 1', '"a // b'),
        ("print 'a\\'", "'a\\'"),
        ("print @'a''b\nc", "@'a''b\nc"),
        ("print ```a\n// b", "```a\n// b"),
    ],
)
def test_an_unclosed_string_stays_visible(kql: str, unclosed: str) -> None:
    """An unclosed string ends with its line, or with the text where its form spans lines, and is not blanked."""
    assert [token.text for token in tokenize(kql) if token.kind == TokenKind.UNCLOSED] == [unclosed]
    assert mask_literals(kql) == kql


def test_each_token_has_a_kind() -> None:
    """Names, numbers, strings and punctuation are told apart."""
    kinds = [(token.kind, token.text) for token in tokenize("T | take 1d; // x\n['a b']")]
    assert kinds == [
        (TokenKind.NAME, "T"),
        (TokenKind.PUNCTUATION, "|"),
        (TokenKind.NAME, "take"),
        (TokenKind.NUMBER, "1d"),
        (TokenKind.PUNCTUATION, ";"),
        (TokenKind.PUNCTUATION, "["),
        (TokenKind.STRING, "'a b'"),
        (TokenKind.PUNCTUATION, "]"),
    ]
