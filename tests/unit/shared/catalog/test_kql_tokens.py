"""Tests of the KQL tokenizer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.kql_tokens import TokenKind, mask_literals, tokenize

KQL = st.text(alphabet="ab1'\"\\@/`~\n |;()*", max_size=60)


@given(KQL)
def test_masking_strings_and_comments_preserves_positions(kql: str) -> None:
    """Masking the strings and comments of a text does not change its length."""
    assert len(mask_literals(kql)) == len(kql)


@given(KQL)
def test_tokens_omit_only_space_and_comments(kql: str) -> None:
    """Each token is the text at its offset; only white space and comments are between tokens."""
    end = 0
    for token in tokenize(kql):
        assert kql[token.start :].startswith(token.text)
        assert not mask_literals(kql)[end : token.start].strip()
        end = token.start + len(token.text)
    assert not mask_literals(kql)[end:].strip()


@given(KQL)
def test_masking_and_tokenizer_find_the_same_strings(kql: str) -> None:
    """Tokenizer and masking find the same closed strings in a text."""
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
def test_strings_and_comments_are_masked(kql: str, blanked: str) -> None:
    """Each form of string and comment is replaced by spaces."""
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
def test_unclosed_string_is_not_masked(kql: str, unclosed: str) -> None:
    """An unclosed string is not masked; it ends at the end of its line or, if its form allows, of the text."""
    assert [token.text for token in tokenize(kql) if token.kind == TokenKind.UNCLOSED] == [unclosed]
    assert mask_literals(kql) == kql


def test_each_token_has_a_kind() -> None:
    """Each token is a name, a number, a string or punctuation."""
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
