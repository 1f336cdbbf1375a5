"""Reads expressions of Cosmos SQL into functions of a row."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from emulators.cosmos.sql_functions import AGGREGATES, FUNCTIONS
from emulators.cosmos.sql_tokens import SqlToken, parse_string_literal, syntax_error, tokenize
from emulators.cosmos.sql_values import UNDEFINED, compare, compare_equal
from emulators.cosmos.wire import CosmosError


@dataclass(frozen=True, slots=True)
class SqlRow:
    """What an expression is evaluated on: a document, and the aggregates' totals once they are known."""

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
    """Reads a query's tokens one after the other.

    Attributes:
        text: The query.
        parameters: The values of its parameters, by names with @.
        alias: The name of the document; set when FROM is known.
        aggregates: The aggregates met, as names with their arguments.
    """

    text: str
    parameters: Mapping[str, Any]
    alias: str = "c"
    aggregates: list[tuple[str, SqlExpression]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = tokenize(self.text)
        self.place = 0

    @property
    def next(self) -> SqlToken:
        """The token that comes next."""
        return self.tokens[self.place]

    def error(self) -> CosmosError:
        """Gives the refusal of what comes next."""
        return syntax_error(self.text, self.next.start)

    def take(self) -> SqlToken:
        """Takes the next token."""
        self.place += 1
        return self.tokens[self.place - 1]

    def take_if(self, *words: str) -> bool:
        """Takes the next token if it is one of these keywords or symbols."""
        if self.next.kind in ("name", "symbol") and self.next.text.upper() in words:
            self.place += 1
            return True
        return False

    def expect(self, word: str) -> None:
        """Takes a keyword or symbol that must come next."""
        if not self.take_if(word):
            raise self.error()

    def name(self) -> str:
        """Takes a name."""
        if self.next.kind != "name" or self.next.text.upper() in _RESERVED:
            raise self.error()
        return self.take().text

    def expression(self) -> SqlExpression:
        """Reads an expression."""
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
        """Steps through a list up to its closing symbol; the caller reads one element at each step."""
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
        """Reads the steps of a path after the alias: names and places in arrays."""
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
                400, f"'{token.text}' with {len(arguments)} arguments is not a function of this test server."
            )
        return lambda row: function(*(argument(row) for argument in arguments))


def path_expression(steps: tuple[str | int, ...]) -> SqlExpression:
    """Gives the expression that takes the value at a path of the document."""
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
    """OR (decided by a true part) or AND (by a false one); a part that is no boolean leaves undefined."""
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
