"""Takes the text of a query apart into tokens."""

import json
import re
from dataclasses import dataclass

from emulators.cosmos.wire import CosmosError

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<parameter>@\w+)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<symbol><=|>=|!=|<>|[()\[\]{},.:*=<>+\-])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class SqlToken:
    """One token: its kind (number, string, parameter, name, symbol, end), text, and place in the query."""

    kind: str
    text: str
    start: int
    end: int


def syntax_error(text: str, at: int) -> CosmosError:
    """Gives the refusal of a query that cannot be read."""
    return CosmosError(
        400, f"Syntax error, or a form that the Cosmos test server does not implement, near '{text[at : at + 30]}'."
    )


def tokenize(text: str) -> list[SqlToken]:
    """Gives the tokens of a query, and one of kind `end`.

    Raises:
        Refusal: 400, there is something that is no token.
    """
    tokens: list[SqlToken] = []
    position, last = 0, len(text.rstrip())
    while position < last:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise syntax_error(text, position)
        position = match.end()
        tokens.append(SqlToken(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup), position))
    return [*tokens, SqlToken("end", "", last, last)]


def parse_string_literal(literal: str) -> str:
    """Gives the value of a string literal in single or double quotes."""
    inner = literal[1:-1]
    if literal[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    return str(json.loads(f'"{inner}"', strict=False))
