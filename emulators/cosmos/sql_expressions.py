"""Parser of Cosmos SQL expressions into functions of a row."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from emulators.cosmos.sql_functions import AGGREGATES, FUNCTIONS
from emulators.cosmos.sql_values import UNDEFINED, compare, compare_equal
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
    """Token: its kind (number, string, parameter, name, symbol, end), text and position in the query."""

    kind: str
    text: str
    start: int
    end: int


def syntax_error(text: str, at: int) -> CosmosError:
    """Return the error for a query with invalid syntax."""
    return CosmosError(
        400, f"Syntax error, or syntax that the Cosmos test server does not implement, near '{text[at : at + 30]}'."
    )


def tokenize(text: str) -> list[SqlToken]:
    """Return the tokens of a query and a final token of kind `end`.

    Raises:
        CosmosError: 400 if the text contains an invalid token.
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
    """Return the value of a string literal in single or double quotes."""
    inner = literal[1:-1]
    if literal[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    return str(json.loads(f'"{inner}"', strict=False))


@dataclass(frozen=True, slots=True)
class SqlRow:
    """Input of an expression: a document, and aggregate values if known."""

    document: Any
    totals: tuple[Any, ...] = ()


type SqlExpression = Callable[[SqlRow], Any]

_ORDERS: dict[str, Callable[[int], bool]] = {
    "<": lambda result: result < 0,
    "<=": lambda result: result <= 0,
    ">": lambda result: result > 0,
    ">=": lambda result: result >= 0,
}
_LITERALS: dict[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None, "UNDEFINED": UNDEFINED}
_RESERVED = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "ORDER", "OFFSET", "LIMIT", "WHERE", "FROM", "AS", "LIKE"})


@dataclass
class ExpressionReader:
    """Parser of the tokens of a query.

    Attributes:
        text: The query.
        parameters: The values of its parameters, by name with @.
        alias: The alias of the document in FROM.
        aggregates: The parsed aggregates: names and arguments.
    """

    text: str
    parameters: Mapping[str, Any]
    alias: str = "c"
    aggregates: list[tuple[str, SqlExpression]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = tokenize(self.text)
        self.index = 0

    @property
    def next(self) -> SqlToken:
        """Next token."""
        return self.tokens[self.index]

    def error(self) -> CosmosError:
        """Return the syntax error at the next token."""
        return syntax_error(self.text, self.next.start)

    def take(self) -> SqlToken:
        """Return the next token and advance."""
        self.index += 1
        return self.tokens[self.index - 1]

    def take_if(self, *words: str) -> bool:
        """Advance if the next token is one of these keywords or symbols; return whether it is."""
        if self.next.kind in ("name", "symbol") and self.next.text.upper() in words:
            self.index += 1
            return True
        return False

    def expect(self, word: str) -> None:
        """Advance over a required keyword or symbol."""
        if not self.take_if(word):
            raise self.error()

    def name(self) -> str:
        """Parse a name."""
        if self.next.kind != "name" or self.next.text.upper() in _RESERVED:
            raise self.error()
        return self.take().text

    def expression(self) -> SqlExpression:
        """Parse an expression."""
        parts = [self._conjunction()]
        while self.take_if("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else lambda row: _combine(parts, row, decisive=True)

    def _conjunction(self) -> SqlExpression:
        parts = [self._negation()]
        while self.take_if("AND"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else lambda row: _combine(parts, row, decisive=False)

    def _negation(self) -> SqlExpression:
        return _negate(self._negation()) if self.take_if("NOT") else self._comparison()

    def _comparison(self) -> SqlExpression:
        left = self._primary()
        if self.take_if("="):
            right = self._primary()
            return lambda row: compare_equal(left(row), right(row))
        if self.take_if("!=", "<>"):
            other = self._primary()
            return _negate(lambda row: compare_equal(left(row), other(row)))
        if self.next.kind == "symbol" and self.next.text in _ORDERS:
            return _order(left, self.take().text, self._primary())
        if self.take_if("NOT"):
            return _negate(self._membership(left))
        return self._membership(left) if self.next.text.upper() in ("IN", "BETWEEN") else left

    def _membership(self, left: SqlExpression) -> SqlExpression:
        if self.take_if("BETWEEN"):
            low = _order(left, ">=", self._primary())
            self.expect("AND")
            bounds = [low, _order(left, "<=", self._primary())]
            return lambda row: _combine(bounds, row, decisive=False)
        self.expect("IN")
        self.expect("(")
        tests = [self._equality(left) for _ in self._iterate_list(")")]
        if not tests:
            raise self.error()
        return lambda row: _combine(tests, row, decisive=True)

    def _equality(self, left: SqlExpression) -> SqlExpression:
        right = self.expression()
        return lambda row: compare_equal(left(row), right(row))

    def _iterate_list(self, closing: str) -> Any:
        """Iterate over a list up to its closing symbol; the caller parses one element in each step."""
        if self.take_if(closing):
            return
        while True:
            yield
            if self.take_if(closing):
                return
            self.expect(",")

    def _primary(self) -> SqlExpression:
        token = self.next
        if token.kind == "symbol":
            return self._grouped()
        self.take()
        match token.kind:
            case "number":
                return _constant(json.loads(token.text))
            case "string":
                return _constant(parse_string_literal(token.text))
            case "parameter":
                if token.text not in self.parameters:
                    raise CosmosError(400, f"The parameter '{token.text}' is not defined.")
                return _constant(self.parameters[token.text])
            case "name" if token.text.upper() not in _RESERVED:
                return self._named(token)
            case _:
                raise syntax_error(self.text, token.start)

    def _grouped(self) -> SqlExpression:
        if self.take_if("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.take_if("-"):
            number = self.take()
            if number.kind != "number":
                raise syntax_error(self.text, number.start)
            return _constant(-json.loads(number.text))
        if self.take_if("["):
            elements = [self.expression() for _ in self._iterate_list("]")]
            return lambda row: [value for part in elements if (value := part(row)) is not UNDEFINED]
        self.expect("{")
        members = [self._member() for _ in self._iterate_list("}")]
        return lambda row: {name: value for name, part in members if (value := part(row)) is not UNDEFINED}

    def _member(self) -> tuple[str, SqlExpression]:
        token = self.take()
        if token.kind not in ("string", "name"):
            raise syntax_error(self.text, token.start)
        self.expect(":")
        return (parse_string_literal(token.text) if token.kind == "string" else token.text), self.expression()

    def _named(self, token: SqlToken) -> SqlExpression:
        upper = token.text.upper()
        if self.take_if("("):
            return self._call(token, upper)
        if token.text == self.alias:
            return path_expression(self.path())
        if upper in _LITERALS:
            return _constant(_LITERALS[upper])
        raise CosmosError(400, f"Identifier '{token.text}' could not be resolved.")

    def path(self) -> tuple[str | int, ...]:
        """Parse the steps of a path after the alias: names and array indexes."""
        steps: list[str | int] = []
        while self.next.text in (".", "["):
            if self.take_if("."):
                if self.next.kind != "name":
                    raise self.error()
                steps.append(self.take().text)
                continue
            self.expect("[")
            steps.append(self._step(self.take()))
            self.expect("]")
        return tuple(steps)

    def _step(self, token: SqlToken) -> str | int:
        if token.kind == "string":
            return parse_string_literal(token.text)
        if token.kind == "number" and token.text.isdecimal():
            return int(token.text)
        raise syntax_error(self.text, token.start)

    def _call(self, token: SqlToken, upper: str) -> SqlExpression:
        arguments = [self.expression() for _ in self._iterate_list(")")]
        if upper in AGGREGATES and len(arguments) == 1:
            self.aggregates.append((upper, arguments[0]))
            index = len(self.aggregates) - 1
            return lambda row: row.totals[index]
        fewest, most, function = FUNCTIONS.get(upper, (1, 0, None))
        if function is None or not fewest <= len(arguments) <= most:
            raise CosmosError(
                400, f"'{token.text}' with {len(arguments)} arguments is not supported by this test server."
            )
        return lambda row: function(*(argument(row) for argument in arguments))


def path_expression(steps: tuple[str | int, ...]) -> SqlExpression:
    """Return the expression for the value at a path of the document."""
    return lambda row: _value_at(row.document, steps)


def _constant(value: Any) -> SqlExpression:
    return lambda _: value


def _negate(inner: SqlExpression) -> SqlExpression:
    def negate(row: SqlRow) -> Any:
        value = inner(row)
        return not value if isinstance(value, bool) else UNDEFINED

    return negate


def _order(left: SqlExpression, symbol: str, right: SqlExpression) -> SqlExpression:
    holds = _ORDERS[symbol]

    def evaluate(row: SqlRow) -> Any:
        result = compare(left(row), right(row))
        return UNDEFINED if result is None else holds(result)

    return evaluate


def _combine(parts: list[SqlExpression], row: SqlRow, *, decisive: bool) -> Any:
    """Evaluate OR (``decisive`` is true) or AND (false); a non-boolean part makes an undecided result undefined."""
    result: Any = not decisive
    for part in parts:
        value = part(row)
        if value is decisive:
            return decisive
        if not isinstance(value, bool):
            result = UNDEFINED
    return result


def _value_at(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        is_index = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not is_index and not (isinstance(value, dict) and step in value):
            return UNDEFINED
        value = value[step]
    return value
