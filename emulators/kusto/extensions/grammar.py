"""Lexer that rewrites valid KQL syntax that the translator library's grammar would reject.

The lexer replaces and inserts tokens; the positions of all other tokens in the query text do not change.
"""

from collections import deque
from typing import Any

from antlr4 import Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql import parser
from duckdb_kql._antlr.KqlLexer import KqlLexer

from emulators.kusto.extensions.library import replace_attribute

NOTHING = "\N{SYMBOL FOR NULL}"
"""Placeholder for the expressions of ``serialize`` without arguments and for the star of an output schema."""

macros: tuple[str, ...] = ()
_ENDS = frozenset({KqlLexer.BAR, KqlLexer.CLOSEPAREN, KqlLexer.CLOSEBRACE, KqlLexer.SEMICOLON, Token.EOF})
_PROPERTIES = frozenset({"regex", "quote", "escape", "greedy"})
_RANGES = frozenset({KqlLexer.BETWEEN, KqlLexer.NOT_BETWEEN})
_BLANKS = frozenset(map(ord, " \t\r\n\f"))
_BY_NAMES = "-by-names"
_FIND_ENDS = frozenset({KqlLexer.BAR, KqlLexer.SEMICOLON})
_EMPTY_PACK = (KqlLexer.PACK, KqlLexer.OPENPAREN)
_BEGINS = frozenset({KqlLexer.BAR, KqlLexer.OPENPAREN})


class RewritingLexer(KqlLexer):
    """Lexer that rewrites tokens that the translator library's grammar would reject.

    The lexer rewrites ``serialize`` without arguments, ``parse-kv``, the star of an output schema, keywords as column
    names, ``project-by-names``, ``table()`` and the bounds of ``between``.
    """

    def __init__(self, text: Any) -> None:
        super().__init__(text)
        self._ahead: deque[Token] = deque()
        self._before = Token.INVALID_TYPE
        self._earlier = Token.INVALID_TYPE
        self._in_parse_kv = False
        self._in_render = False
        self._in_find = False
        self._in_find_project = False
        self._depth = 0
        self._bounds: list[int] = []

    def nextToken(self) -> Token:  # noqa: N802  the runtime's interface
        """Return the next token of the query, including hidden tokens such as comments."""
        token = self._ahead.popleft() if self._ahead else super().nextToken()
        if token.channel != Token.DEFAULT_CHANNEL:
            return token
        if self._is_view_keyword(token) or (self._in_parse_kv and token.type == KqlLexer.AS):
            token.channel = Token.HIDDEN_CHANNEL
            return token
        token = self._add_parentheses_to_between_bound(self._replace_rejected_token(token))
        self._earlier, self._before = self._before, token.type
        return token

    def _replace_rejected_token(self, token: Token) -> Token:
        """Return the token, or a replacement if the grammar would reject the token at this position."""
        if token.type == KqlLexer.SERIALIZE and self._before in _BEGINS:
            self._add_serialize_placeholder(token)
        elif token.type == KqlLexer.PARSEKV and self._before in _BEGINS:
            self._in_parse_kv = True
        elif self._in_parse_kv and token.type == KqlLexer.BAR:
            self._in_parse_kv = False
        elif self._in_parse_kv and token.text in _PROPERTIES:
            token.type = KqlLexer.IDENTIFIER
        elif token.type == KqlLexer.ASTERISK and (self._earlier, self._before) == (KqlLexer.COLON, KqlLexer.OPENPAREN):
            self._ahead.extendleft(
                [_copy_token_as(token, KqlLexer.LONG, "long"), _copy_token_as(token, KqlLexer.COLON, ":")]
            )
            token = _copy_token_as(token, KqlLexer.IDENTIFIER, NOTHING)
        elif self._in_find:
            self._rewrite_pack_all_in_find(token)
        elif token.type == KqlLexer.PROJECT and self._before == KqlLexer.BAR:
            self._join_project_by_names_tokens(token)
        elif self._is_keyword_as_column_name(token) or self._is_table_call(token):
            token.type = KqlLexer.IDENTIFIER
        self._in_find = token.type == KqlLexer.FIND or (self._in_find and token.type not in _FIND_ENDS)
        return token

    def _is_view_keyword(self, token: Token) -> bool:
        """Return whether the token is the keyword ``view`` in the declaration of a function.

        The lexer hides this keyword, because the grammar would reject it.
        """
        return token.type == KqlLexer.VIEW and self._before == KqlLexer.EQUAL and self._is_followed_by_parenthesis()

    def _is_keyword_as_column_name(self, token: Token) -> bool:
        """Return whether the token is ``title`` or ``count``, used as a column name instead of a keyword."""
        if token.type == KqlLexer.RENDER:
            self._in_render = True
        if token.type == KqlLexer.TITLE:
            return not self._in_render
        return token.type == KqlLexer.COUNT and self._before not in _BEGINS and not self._is_followed_by_parenthesis()

    def _is_table_call(self, token: Token) -> bool:
        return token.type == KqlLexer.TABLE and self._is_followed_by_parenthesis()

    def _join_project_by_names_tokens(self, token: Token) -> None:
        """Combine the tokens of ``project-by-names`` into one token, which the grammar accepts as ``project``."""
        rest = [chr(self._input.LA(ahead)) for ahead in range(1, len(_BY_NAMES) + 1) if self._input.LA(ahead) > 0]
        if "".join(rest) != _BY_NAMES or self._ahead:
            return
        while self._input.index <= token.stop + len(_BY_NAMES):
            super().nextToken()
        token.text = f"project{_BY_NAMES}"

    def _rewrite_pack_all_in_find(self, token: Token) -> None:
        """Rewrite ``pack_all()`` in the ``project`` clause of ``find`` as ``pack(*)``."""
        if token.type == KqlLexer.PROJECT:
            self._in_find_project = True
        elif token.text == "pack_all" and self._in_find_project:
            token.type = KqlLexer.PACK
        elif token.type == KqlLexer.CLOSEPAREN and (self._earlier, self._before) == _EMPTY_PACK:
            self._ahead.appendleft(token.clone())
            token.type, token.text = KqlLexer.ASTERISK, "*"

    def _is_followed_by_parenthesis(self) -> bool:
        ahead = 1
        while self._input.LA(ahead) in _BLANKS:
            ahead += 1
        return bool(self._input.LA(ahead) == ord("("))

    def _add_parentheses_to_between_bound(self, token: Token) -> Token:
        """Add parentheses around each bound of ``between``.

        Without parentheses, the grammar accepts only simple values as bounds.
        """
        if token.type == KqlLexer.OPENPAREN:
            self._depth += 1
            if self._before in _RANGES:
                self._ahead.appendleft(_copy_token_as(token, KqlLexer.OPENPAREN, "("))
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
            self._ahead.appendleft(_copy_token_as(token, KqlLexer.OPENPAREN, "("))
        self._ahead.appendleft(token)
        return _copy_token_as(token, KqlLexer.CLOSEPAREN, ")")

    def _add_serialize_placeholder(self, serialize_token: Token) -> None:
        """Add a placeholder argument after ``serialize`` without arguments, because the grammar requires one."""
        ahead = []
        while True:
            ahead.append(super().nextToken())
            if ahead[-1].channel == Token.DEFAULT_CHANNEL:
                break
        if ahead[-1].type in _ENDS and not (self._before == KqlLexer.OPENPAREN and ahead[-1].type != KqlLexer.BAR):
            ahead.insert(0, _copy_token_as(serialize_token, KqlLexer.IDENTIFIER, NOTHING))
        self._ahead.extend(ahead)


def _copy_token_as(token: Token, token_type: int, text: str) -> Token:
    """Return a new token with another type and text, at the position of the given token."""
    replacement = token.clone()
    replacement.type, replacement.text = token_type, text
    return replacement


def install_into_translator() -> None:
    """Make the translator library use `RewritingLexer`, which accepts more KQL syntax."""
    replace_attribute(parser, "KqlLexer", lambda _: RewritingLexer)
