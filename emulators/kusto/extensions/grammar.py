"""Lexer for KQL syntax that is missing in the grammar of the translator library.

It replaces and inserts tokens. The positions of all other tokens in the query text do not change.
"""

from collections import deque
from typing import Any

from antlr4 import Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql import parser
from duckdb_kql._antlr.KqlLexer import KqlLexer

from emulators.kusto.extensions.library import replace

NOTHING = "\N{SYMBOL FOR NULL}"
"""Placeholder for the expressions of ``serialize`` without arguments and for the star of an output schema."""

macros: tuple[str, ...] = ()
_ENDS = frozenset({KqlLexer.BAR, KqlLexer.CLOSEPAREN, KqlLexer.CLOSEBRACE, KqlLexer.SEMICOLON, Token.EOF})
_PROPERTIES = frozenset({"regex", "quote", "escape", "greedy"})
_RANGES = frozenset({KqlLexer.BETWEEN, KqlLexer.NOT_BETWEEN})
_BLANKS = frozenset(map(ord, " \t\r\n\f"))
_BEGINS = frozenset({KqlLexer.BAR, KqlLexer.OPENPAREN})


class CompletingLexer(KqlLexer):
    """Lexer that rewrites tokens which the library's grammar does not accept.

    It rewrites ``serialize`` without arguments, ``parse-kv``, the star of an output schema, keywords as column names,
    and the bounds of ``between``.
    """

    def __init__(self, text: Any) -> None:
        super().__init__(text)
        self._ahead: deque[Token] = deque()
        self._before = Token.INVALID_TYPE
        self._earlier = Token.INVALID_TYPE
        self._in_parse_kv = False
        self._in_render = False
        self._depth = 0
        self._bounds: list[int] = []

    def nextToken(self) -> Token:  # noqa: N802  the runtime's interface
        """Return the next token of the query, including hidden tokens such as comments."""
        token = self._ahead.popleft() if self._ahead else super().nextToken()
        if token.channel != Token.DEFAULT_CHANNEL:
            return token
        if token.type == KqlLexer.SERIALIZE and self._before in _BEGINS:
            self._complete_serialize(token)
        elif token.type == KqlLexer.PARSEKV and self._before in _BEGINS:
            self._in_parse_kv = True
        elif self._in_parse_kv and token.type in (KqlLexer.AS, KqlLexer.BAR):
            if token.type == KqlLexer.AS:
                token.channel = Token.HIDDEN_CHANNEL
                return token
            self._in_parse_kv = False
        elif self._in_parse_kv and token.text in _PROPERTIES:
            token.type = KqlLexer.IDENTIFIER
        elif token.type == KqlLexer.ASTERISK and (self._earlier, self._before) == (KqlLexer.COLON, KqlLexer.OPENPAREN):
            self._ahead.extendleft(
                [_replace_token(token, KqlLexer.LONG, "long"), _replace_token(token, KqlLexer.COLON, ":")]
            )
            token = _replace_token(token, KqlLexer.IDENTIFIER, NOTHING)
        elif self._is_column_name(token):
            token.type = KqlLexer.IDENTIFIER
        token = self._add_parentheses(token)
        self._earlier, self._before = self._before, token.type
        return token

    def _is_column_name(self, token: Token) -> bool:
        """Return whether the keyword ``title`` or ``count`` is a column name in this place, as in Data Explorer."""
        if token.type == KqlLexer.RENDER:
            self._in_render = True
        if token.type == KqlLexer.TITLE:
            return not self._in_render
        return token.type == KqlLexer.COUNT and self._before not in _BEGINS and not self._is_called()

    def _is_called(self) -> bool:
        ahead = 1
        while self._input.LA(ahead) in _BLANKS:
            ahead += 1
        return bool(self._input.LA(ahead) == ord("("))

    def _add_parentheses(self, token: Token) -> Token:
        """Add parentheses around each bound of ``between``.

        The grammar accepts other bounds than simple values only in parentheses.
        """
        if token.type == KqlLexer.OPENPAREN:
            self._depth += 1
            if self._before in _RANGES:
                self._ahead.appendleft(_replace_token(token, KqlLexer.OPENPAREN, "("))
                self._bounds.append(self._depth + 1)
            return token
        if token.type not in (KqlLexer.DOTDOT, KqlLexer.CLOSEPAREN):
            return token
        ends = bool(self._bounds) and self._bounds[-1] == self._depth
        self._depth -= token.type == KqlLexer.CLOSEPAREN or ends
        if not ends:
            return token
        if token.type == KqlLexer.CLOSEPAREN:
            self._bounds.pop()
        else:
            self._ahead.appendleft(_replace_token(token, KqlLexer.OPENPAREN, "("))
        self._ahead.appendleft(token)
        return _replace_token(token, KqlLexer.CLOSEPAREN, ")")

    def _complete_serialize(self, serialize: Token) -> None:
        ahead = []
        while True:
            ahead.append(super().nextToken())
            if ahead[-1].channel == Token.DEFAULT_CHANNEL:
                break
        if ahead[-1].type in _ENDS and not (self._before == KqlLexer.OPENPAREN and ahead[-1].type != KqlLexer.BAR):
            ahead.insert(0, _replace_token(serialize, KqlLexer.IDENTIFIER, NOTHING))
        self._ahead.extend(ahead)


def _replace_token(token: Token, kind: int, text: str) -> Token:
    """Return a new token with another type and text, at the position of a token."""
    replacement = token.clone()
    replacement.type, replacement.text = kind, text
    return replacement


def install() -> None:
    """Make the translator library use this lexer."""
    replace(parser, "KqlLexer", lambda _: CompletingLexer)
